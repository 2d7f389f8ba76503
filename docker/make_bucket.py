"""Makes the bucket of the connection `lake_default`; an existing one is left as it is."""

import json
import os
from urllib.parse import urlsplit

from pyarrow.fs import S3FileSystem

lake = json.loads(os.environ["AIRFLOW_CONN_LAKE_DEFAULT"])["extra"]
options = lake["options"]
store = S3FileSystem(
    access_key=options["s3.access-key"],
    secret_key=options["s3.secret-key"],
    endpoint_override=options["s3.endpoint"],
    region="us-east-1",  # else it is asked of AWS
    allow_bucket_creation=True,
)
store.create_dir(urlsplit(lake["warehouse"]).netloc)
