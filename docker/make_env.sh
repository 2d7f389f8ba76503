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
umask 077
cat > .env <<EOF
POSTGRES_PASSWORD=$(random 16)
S3_ACCESS_KEY=$(random 8)
S3_SECRET_KEY=$(random 24)
AIRFLOW_JWT_SECRET=$(random 48)
AIRFLOW_FERNET_KEY=$(python3 -c "import base64, secrets; print(base64.urlsafe_b64encode(secrets.token_bytes(32)).decode())")
AIRFLOW_SECRET_KEY=$(random 32)
EOF
echo "docker/.env is written"
