"""Functions of tables that another task names, by templates and by mapping."""

from airflow.sdk import DAG, task

with DAG("functions", schedule=None, params={"counted": "shop.tea"}):

    @task
    def tables():
        return ["shop.tea", "shop.milk"]

    @task.lake_commit(create=True, map_index_template="{{ task.table }}")
    def fill(table, run):
        return [{"n": number, "run": run} for number in range(3)]

    @task.lake_job(table="{{ params.counted }}")
    def count(table, filled):
        return table.scan().count() + len(filled)

    @task
    def pick():
        return "shop.milk"

    @task.lake_job
    def count_what_was_picked(table):
        return table.scan().count()

    @task
    def report(snapshots):
        return [*snapshots]

    filled = fill.partial(run="{{ run_id }}").expand(table=tables())
    count([1, 2]) << filled
    report(filled["snapshot_id"])
    filled >> count_what_was_picked(pick())

with DAG("mistaken_function", schedule=None):

    @task.lake_commit(retries=3)
    def nowhere(table):
        return []

    nowhere.expand(table=["no name", "shop.none"])
