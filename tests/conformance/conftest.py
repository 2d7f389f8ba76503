"""The S3 server of a session, and a bucket of one test."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from tests.conformance.s3_server import ACCESS_KEY, SECRET_KEY, options_for, running_s3_server


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    with running_s3_server() as endpoint:
        yield endpoint


@pytest.fixture
def s3_client(s3_endpoint):
    """Another client than ours, to look at what really lies in a bucket."""
    import boto3

    client = boto3.client(
        "s3",
        endpoint_url=s3_endpoint,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
        region_name="us-east-1",
    )
    yield client
    client.close()


@pytest.fixture
def s3_bucket(s3_client) -> str:
    bucket = f"lake-{uuid.uuid4()}"
    s3_client.create_bucket(Bucket=bucket)
    return bucket


@pytest.fixture
def s3_options(s3_endpoint) -> dict[str, str]:
    return options_for(s3_endpoint)
