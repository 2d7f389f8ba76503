"""The members of Airflow's Spark operator and hook that ours are built on.

Each of these fails when a new release of the Spark provider moves a method that ours
overrides. Where it starts a program, that is a real process: a script in place of spark-submit.
"""

import inspect
import json
import sys
from pathlib import Path

import pytest
from airflow.providers.apache.spark.hooks import spark_submit as stock_hook
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators import spark_submit as stock

from airflow_provider_lake.jobs import job_output
from airflow_provider_lake.jobs.job_output import JobOutput
from airflow_provider_lake.jobs.prepared_job import job_file
from airflow_provider_lake.operators.compact import LakeCompactOperator
from airflow_provider_lake.spark.arguments import SPARK_ARGUMENTS
from airflow_provider_lake.spark.master import find_spark_submit, spark_connection
from airflow_provider_lake.spark.submission import LakeSparkSubmission
from airflow_provider_lake.spark.submit import LakeSparkSubmitHook
from spark_jobs.runtime import command, progress, spark_session
from tests.airflow.versions import AIRFLOW, AirflowException, AirflowFailException


@pytest.fixture
def make_hook(connect):
    """Our hook on a connection of its own."""

    def make(
        master="local[1]",
        *,
        before_submit=lambda: None,
        env=None,
        output=None,
        extra=None,
        **stock,
    ):
        connect("spark_here", conn_type="spark", host=master, extra=extra or {})
        return LakeSparkSubmitHook(
            connection=spark_connection("spark_here"),
            process_env=env or {},
            output=output or JobOutput(),
            before_submit=before_submit,
            conn_id="spark_here",
            **stock,
        )

    return make


@pytest.fixture
def spark_submit(tmp_path):
    """A program that prints its arguments, and then a given text."""

    def make(body="", code=0):
        program = tmp_path / "spark-submit"
        program.write_text(
            f"#!{sys.executable}\n"
            "import json, os, sys\n"
            f"print('GIVEN ' + json.dumps([sys.argv[1:], dict(os.environ)]), flush=True)\n"
            f"{body}\nsys.exit({code})\n"
        )
        program.chmod(0o755)
        return str(program)

    return make


@pytest.fixture
def submission():
    """Return Airflow's Spark operator that an operator creates to submit."""

    def make(**stock):
        return LakeSparkSubmission(
            task_id="work",
            connection=spark_connection("spark_default"),
            process_env={},
            output=JobOutput(),
            before_submit=lambda: None,
            **stock,
        )

    return make


def test_our_operators_take_every_argument_of_the_stock_one():
    """Leave out arguments that ours sets itself, and names Airflow's has dropped."""
    parameters = inspect.signature(inspect.unwrap(stock.SparkSubmitOperator.__init__)).parameters
    theirs = {name for name, each in parameters.items() if each.kind is each.KEYWORD_ONLY}

    assert theirs - {*SPARK_ARGUMENTS} == {"conn_id", "application_args", "reconnect_on_retry"}
    assert {*SPARK_ARGUMENTS} <= theirs


def test_what_is_a_template_there_is_one_here():
    templates = {*LakeCompactOperator.template_fields}

    assert {*stock.SparkSubmitOperator.template_fields} - templates == {"application_args"}
    assert templates >= {*SPARK_ARGUMENTS} - {"yarn_rm_auth"}


def test_the_stock_operator_keeps_what_it_is_given(submission, connect):
    """Under the names from which our hook takes it; what is not given has the stock's default."""
    given = {
        name: {"conf": {"a": "b"}, "env_vars": {"a": "b"}, "num_executors": 3}.get(name, name)
        for name in SPARK_ARGUMENTS
        if not name.startswith(("openlineage_", "track_", "yarn_track_"))
    }
    kept = vars(submission(**given))

    # Before Airflow 3.3 no task keeps the id of its driver: SparkSubmitOperator has this one off.
    can_keep = AIRFLOW.release >= (3, 3)
    lost = {name for name in given if kept.get(name, kept.get(f"_{name}")) != given[name]}
    assert lost == (set() if can_keep else {"durable"})
    assert submission().durable is can_keep


def test_our_hook_is_given_every_argument_the_stock_operator_gives_its_own(monkeypatch, submission):
    given = {}
    monkeypatch.setattr(stock, "SparkSubmitHook", lambda **kwargs: given.update(kwargs))
    stock.SparkSubmitOperator._get_hook(submission())
    ours = inspect.getsource(LakeSparkSubmission._get_hook)

    assert {name for name in given if f"{name}=" not in ours} == set()
    assert set(given) <= set(inspect.signature(SparkSubmitHook.__init__).parameters)


def test_the_stock_operator_makes_its_hook_through_get_hook_and_submits_with_it(
    monkeypatch, submission, caplog
):
    class Hook:
        _should_track_driver_status = _is_yarn_cluster_mode = False
        submitted = None

        def _should_track_driver_via_k8s_api(self):
            return False

        def submit(self, application):
            self.submitted = application

    hook = Hook()
    made = submission(application="job.py")
    monkeypatch.setattr(made, "_get_hook", lambda: hook)

    made.submit_and_wait({})

    assert (made._hook, hook.submitted) == (hook, "job.py")
    assert "outside of the Task Runner" not in caplog.text


def test_a_kill_reaches_the_hook_through_the_stock_operator(make_hook, submission):
    operator = LakeCompactOperator(task_id="work", table="shop.orders")
    operator._submission = submission()
    operator._submission._hook = make_hook()

    operator.on_kill()

    assert operator._submission.was_killed


def test_a_task_that_has_started_nothing_is_killed_without_looking_for_spark(
    monkeypatch, submission
):
    looked = []
    monkeypatch.setattr(LakeSparkSubmission, "_get_hook", looked.append)
    operator = LakeCompactOperator(task_id="work", table="shop.orders")

    operator.on_kill()
    operator._submission = submission()
    operator.on_kill()

    assert looked == []


def test_the_master_is_that_of_the_connection(make_hook):
    assert make_hook("local[2]").master == "local[2]"
    assert make_hook("spark://here:7077").master == "spark://here:7077"


def test_the_stock_hook_would_guess_yarn_where_ours_says_what_is_missing():
    assert SparkSubmitHook(conn_id="no_such_spark")._connection["master"] == "yarn"

    with pytest.raises(
        AirflowFailException, match="Spark connection 'no_such_spark' does not exist"
    ):
        spark_connection("no_such_spark")


def test_without_the_default_connection_spark_runs_here_and_the_log_says_so(caplog):
    with caplog.at_level("WARNING"):
        connection = spark_connection("spark_default")

    assert connection.host == "local[*]"
    assert "Spark runs on this machine with master local[*]" in caplog.text


def test_a_connection_that_is_not_spark_s_is_refused(connect):
    connect("a_database", conn_type="postgres", host="h")

    with pytest.raises(
        AirflowFailException, match="has type 'postgres': use a connection of type 'spark'"
    ):
        spark_connection("a_database")


@pytest.mark.parametrize("master", ["lokal", "http://here", "local[2"])
def test_a_master_nobody_knows_is_refused_before_anything_starts(make_hook, master):
    with pytest.raises(AirflowFailException, match="has an unknown master"):
        make_hook(master)


def test_a_driver_on_a_standalone_cluster_is_refused_as_spark_would(make_hook):
    with pytest.raises(AirflowFailException, match="or pass deploy_mode='client' to"):
        make_hook("spark://here:7077", deploy_mode="cluster")


def test_the_lines_of_the_driver_pass_by_us(make_hook, spark_submit):
    pages = []
    output = JobOutput(on_spark=pages.append)
    body = (
        "print('LAKE_SPARK ' + json.dumps({'application_id': 'local-1', 'ui': 'http://here'}))\n"
        "print('LAKE_PROGRESS ' + json.dumps({'done': 1, 'total': 2, 'unit': 'buckets'}))\n"
        "print('12:00 WARN half a line LAKE_REPORT ' + json.dumps({'reason': 'well'}))"
    )
    hook = make_hook(output=output, spark_binary=spark_submit(body))

    hook.submit("job.py")

    assert output.result == {"reason": "well"}
    assert pages == [{"application_id": "local-1", "ui": "http://here"}]
    assert list(hook._last_submit_log_lines)[-2:] == ["1 of 2 buckets", "result: well"]


def test_a_driver_without_a_page_is_named_alone():
    line = job_output.SPARK + json.dumps({"application_id": "local-1", "ui": None})

    assert list(JobOutput().reading(iter([line]))) == ["Spark application local-1"]


def test_what_spark_says_of_a_silent_master_is_folded_until_it_answers():
    silent = "WARN StandaloneAppClient: Failed to connect to master away:7077"
    answer = job_output.SPARK + json.dumps({"application_id": "app-1", "ui": None})
    summary = "Spark's master away:7077 does not answer; Spark tries for a minute"
    fold = [summary, "::group::Messages of Spark", silent, "at a.b.c", silent]

    lost = list(JobOutput().reading(iter([silent, "at a.b.c", silent])))
    found = list(JobOutput().reading(iter([silent, "at a.b.c", silent, answer, "more"])))

    assert lost == [*fold, "::endgroup::"]
    assert found == [*fold, "::endgroup::", "Spark application app-1", "more"]


YARN = {"yarn_resourcemanager_webapp_address": "http://manager:8088/"}
SEEN = {"application_id": "application_17_0001", "ui": "http://manager:8088/cluster/app/"}
SEEN["ui"] += SEEN["application_id"]


def test_a_driver_on_yarn_is_seen_as_soon_as_its_id_is_known(make_hook, spark_submit):
    pages = []
    body = "print('Submitted application application_17_0001\\nstate: RUNNING\\nstate: RUNNING')"
    hook = make_hook(
        "yarn",
        output=JobOutput(on_spark=pages.append),
        extra=YARN,
        deploy_mode="cluster",
        spark_binary=spark_submit(body),
    )

    hook.submit("job.py")

    assert pages == [SEEN]


def test_kubernetes_without_its_provider_is_refused_and_says_what_to_install(
    make_hook, monkeypatch
):
    monkeypatch.delattr(stock_hook, "kube_client", raising=False)

    with pytest.raises(AirflowFailException, match="apache-airflow-providers-cncf-kubernetes"):
        make_hook("k8s://https://here:6443")


def test_a_driver_on_kubernetes_is_found_in_the_history_server(
    make_hook, spark_submit, monkeypatch
):
    monkeypatch.setattr(stock_hook, "kube_client", object(), raising=False)
    pages = []
    body = "print('labels: spark-app-selector -> spark-5f3, spark-role -> driver\\nexit code: 0')"
    hook = make_hook(
        "k8s://https://here:6443",
        output=JobOutput(on_spark=pages.append),
        extra={"namespace": "jobs"},
        deploy_mode="cluster",
        spark_binary=spark_submit(body),
    )

    hook.submit("job.py")

    assert pages == [{"application_id": "spark-5f3", "ui": None}]


def test_a_retry_that_finds_its_application_on_yarn_says_where_too(make_hook, monkeypatch):
    pages, asked = [], []
    monkeypatch.setattr(
        SparkSubmitHook,
        "_query_yarn_application_status",
        lambda _, application: asked.append(application) or ("FINISHED", "SUCCEEDED", ""),
    )
    hook = make_hook(
        "yarn",
        output=JobOutput(on_spark=pages.append),
        extra=YARN,
        deploy_mode="cluster",
        yarn_track_via_rm_api=True,
    )

    hook._start_yarn_application_status_tracking("application_17_0001")

    assert (asked, pages) == (["application_17_0001"], [SEEN])


def test_jobs_and_provider_mark_lines_alike():
    assert job_output.REPORT == command.REPORT_MARKER
    assert job_output.PROGRESS == progress.PROGRESS_MARKER
    assert job_output.SPARK == spark_session.SPARK_MARKER


def given_to(hook):
    line = next(line for line in hook._last_submit_log_lines if line.startswith("GIVEN "))
    return json.loads(line.removeprefix("GIVEN "))


def test_what_is_secret_is_in_the_environment_of_the_process_and_in_no_argument(
    make_hook, spark_submit, caplog
):
    hook = make_hook(
        "yarn",
        env={"LAKE_CATALOG_OPTIONS": "hush-hush"},
        env_vars={"SHOWN": "1"},
        spark_binary=spark_submit(),
    )
    hook.submit("job.py")
    words, environment = given_to(hook)

    assert "spark.yarn.appMasterEnv.SHOWN=1" in words  # what Airflow's hook does with env_vars
    assert "hush-hush" not in json.dumps(words)
    assert environment["LAKE_CATALOG_OPTIONS"] == "hush-hush"
    assert environment["LAKE_WATCH_PARENT"] == "1"
    assert environment["PYSPARK_DRIVER_PYTHON"] == sys.executable


def test_every_word_is_a_text(make_hook, spark_submit):
    hook = make_hook(
        spark_binary=spark_submit(), application_args=["--n", 1], executor_memory=4, conf={"a": 1}
    )
    hook.submit("job.py")
    words, _ = given_to(hook)

    assert words[-3:] == ["job.py", "--n", "1"]
    assert words[(at := words.index("--executor-memory")) : at + 2] == ["--executor-memory", "4"]


def test_a_setting_of_the_task_wins_over_ours(make_hook):
    hook = make_hook(conf={"spark.ui.enabled": "true"})

    assert hook._conf["spark.ui.enabled"] == "true"
    assert "log4j2.properties" in hook._conf["spark.driver.extraJavaOptions"]


def test_a_failure_has_the_exit_code_and_the_end_of_the_log(make_hook, spark_submit):
    hook = make_hook(spark_binary=spark_submit("print('it broke')", code=7))

    with pytest.raises(AirflowException, match=r"Error code is: 7\.(.|\n)*it broke"):
        hook.submit("job.py")


def test_what_is_left_of_an_earlier_submission_goes_first(make_hook, spark_submit, tmp_path):
    left = tmp_path / "result.json"
    left.touch()
    hook = make_hook(before_submit=left.unlink, spark_binary=spark_submit())

    hook.submit("job.py")

    assert not left.exists()


def test_spark_submit_is_found_inside_pyspark_where_the_path_has_none(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")

    assert Path(find_spark_submit()).is_absolute()
    assert find_spark_submit().endswith("pyspark/bin/spark-submit")


def test_the_settings_of_the_log_are_shipped():
    assert "rootLogger.level" in job_file("log4j2.properties").read_text()
