#!/bin/sh
# Writes docker/.env with fresh secrets; the images hold none, and git ignores the file.
set -eu
cd "$(dirname -- "$(readlink -f -- "$0")")"
if [ -e .env ]; then
    echo "docker/.env is there already: remove it to make another" >&2
    exit 2
fi
random() {
    python3 -c "import secrets; print(secrets.token_hex($1))"
}
# One after the other, and before the file is there: a secret that failed to be made ends it here.
postgres=$(random 16)
access=$(random 8)
secret=$(random 24)
jwt=$(random 48)
fernet=$(python3 -c "import base64, secrets; print(base64.urlsafe_b64encode(secrets.token_bytes(32)).decode())")
session=$(random 32)
umask 077
cat > .env <<EOF
POSTGRES_PASSWORD=$postgres
S3_ACCESS_KEY=$access
S3_SECRET_KEY=$secret
AIRFLOW_JWT_SECRET=$jwt
AIRFLOW_FERNET_KEY=$fernet
AIRFLOW_SECRET_KEY=$session
EOF
echo "docker/.env is written"
