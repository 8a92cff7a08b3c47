"""/metrics: Prometheus' text form, for whoever has the token."""

import pytest
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families
from pytest_django.fixtures import Settings

pytestmark = pytest.mark.filterwarnings("ignore:No directory at")


def test_without_a_token_in_the_settings_there_is_no_such_address(db: None, client: Client) -> None:
    assert client.get("/metrics").status_code == 404


@pytest.mark.parametrize("header", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "s3cret"}])
def test_a_wrong_token_is_told_nothing(db: None, client: Client, settings: Settings, header: dict[str, str]) -> None:
    settings.RECOURSE_METRICS_TOKEN = "s3cret"
    answer = client.get("/metrics", headers=header)
    assert (answer.status_code, answer.content) == (401, b"")


def test_it_is_read_as_prometheus_reads_it(db: None, client: Client, settings: Settings) -> None:
    settings.RECOURSE_METRICS_TOKEN = "s3cret"
    answer = client.get("/metrics", headers={"Authorization": "Bearer s3cret"})
    assert answer.status_code == 200 and "no-store" in answer["Cache-Control"]
    families = {family.name: family for family in text_string_to_metric_families(answer.content.decode())}
    assert {"recourse_due", "recourse_frozen", "recourse_recover_within_seconds"} <= set(families)
    assert {sample.labels["queue"] for sample in families["recourse_due"].samples} == {"advance", "dispatch", "checks"}
    assert client.post("/metrics").status_code == 405
