"""The simulator itself: it loses what a disk may lose, no more, and catches wrong protocols."""

from __future__ import annotations

import json

import pytest

from lakeformat.errors import AlreadyExistsError, CorruptTableError, NotFoundError, UnavailableError
from lakeformat.testing import CrashableStorage, Fault, FaultKind, PowerCut, Trial, every_fault
from tests.sampling import SEED

SEEDS = range(SEED, SEED + 8)


# A tiny protocol: a value is a data file and a numbered file that refers to it. `LATEST` is a hint.


def publish_counted(storage, acknowledged):
    """Correct: whole data first, one atomic publication, a lost answer is looked up."""
    for turn in range(3):
        value = f"value-{len(storage.list('data'))}-{turn}"
        with storage.open_output(f"data/{value}") as stream:
            stream.write(value.encode() * 10)
        number = publish(storage, value)
        acknowledged.append(value)
        storage.overwrite("log/LATEST", str(number).encode())


def publish(storage, value):
    number = max(numbers(storage), default=0) + 1
    try:
        assert storage.create(f"log/{number}", value.encode())
    except UnavailableError:
        if not storage.exists(f"log/{number}") and not storage.create(
            f"log/{number}", value.encode()
        ):
            raise
    return number


def publish_by_overwrite(storage, acknowledged):
    """Wrong: the one file with all values is replaced, so a crash can lose every value."""
    for value in ("a", "b", "c"):
        values = json.loads(storage.read("log/1")) if storage.exists("log/1") else []
        storage.overwrite("log/1", json.dumps([*values, value]).encode())
        acknowledged.append(value)


def publish_before_closing(storage, acknowledged):
    """Wrong: the reference is published while its data file is still open."""
    for number, value in enumerate(("a", "b"), start=1):
        with storage.open_output(f"data/{value}") as stream:
            stream.write(value.encode() * 10)
            storage.create(f"log/{number}", value.encode())
        acknowledged.append(value)


def publish_again_when_unanswered(storage, acknowledged):
    """Wrong: a lost answer is taken for a failure, and the value is published a second time."""
    for number, value in ((1, "a"), (3, "b")):
        with storage.open_output(f"data/{value}") as stream:
            stream.write(value.encode() * 10)
        try:
            storage.create(f"log/{number}", value.encode())
        except UnavailableError:
            storage.create(f"log/{number + 1}", value.encode())
        acknowledged.append(value)


def numbers(storage):
    return [int(info.name) for info in storage.list("log") if info.name.isdigit()]


def check(trial):
    """Every acknowledged value exists once, and every existing value is complete."""
    disk = trial.reopened()
    values: list[str] = []
    for number in sorted(numbers(disk)):
        content = disk.read(f"log/{number}").decode()
        values += json.loads(content) if content.startswith("[") else [content]
        assert content, f"{trial}: log/{number} is torn"
    assert len(values) == len(set(values)), f"{trial}: published twice: {values}"
    assert set(trial.acknowledged) <= set(values), f"{trial}: lost an acknowledged value"
    for value in values:
        if disk.directory_exists("data"):
            whole = value.encode() * 10
            assert disk.read(f"data/{value}") == whole, f"{trial}: {value} has torn data"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_correct_protocol_survives_every_fault(seed):
    trials = [trial.run() for trial in every_fault(publish_counted, seed=seed)]
    for trial in trials:
        check(trial)
    assert len(trials) > 60


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_a_correct_protocol_survives_a_second_fault_while_it_recovers(seed):
    for first in every_fault(publish_counted, seed=seed):
        first.run()
        if first.fault.kind is FaultKind.POWER_CUT_TORN:
            for second in every_fault(publish_counted, start=first.reopened(), seed=seed):
                second.run()
                second.acknowledged += first.acknowledged
                check(second)


@pytest.mark.parametrize(
    ("wrong", "culprit", "symptom"),
    [
        (publish_by_overwrite, "2:overwrite:log/1:power_cut_torn", "torn"),
        (publish_before_closing, "3:close_output:data/a:power_cut_torn", "torn data"),
        (publish_again_when_unanswered, "3:create:log/1:fail_after", "published twice"),
    ],
)
def test_a_wrong_protocol_is_caught(wrong, culprit, symptom):
    complaints = [complaint(wrong, culprit, seed) for seed in range(SEED, SEED + 64)]
    caught = [text for text in complaints if symptom in text]
    assert caught, "each seed loses something else, but 64 seeds lose everything that can be lost"
    assert caught[0].startswith(f"{culprit} (seed ")


def complaint(scenario, culprit, seed):
    """Return why the check fails after this fault, or nothing."""
    (trial,) = (each for each in every_fault(scenario, seed=seed) if each.id == culprit)
    try:
        check(trial.run())
    except (AssertionError, NotFoundError) as error:
        return str(error)
    return ""


# What each fault means


def cut(at, kind=FaultKind.POWER_CUT_TORN, seed=0, start=None):
    fault = Fault(at, kind)
    return start.reopened(fault, seed=seed) if start else CrashableStorage(fault, seed=seed)


def outcomes(act, at=1, start=None, kind=FaultKind.POWER_CUT_TORN):
    """The distinct disks that many seeds leave behind."""
    found = []
    for seed in range(200):
        storage = cut(at, kind, seed, start)
        with pytest.raises(PowerCut):
            act(storage)
        found.append(storage.reopened().files())
    return [found[n] for n in range(len(found)) if found[n] not in found[:n]]


def prepared(**files):
    storage = CrashableStorage()
    for name, content in files.items():
        storage.create(f"d/{name}", content)
    return storage


def test_fail_before_does_nothing_and_fail_after_everything():
    for kind, expected in ((FaultKind.FAIL_BEFORE, {}), (FaultKind.FAIL_AFTER, {"f": b"x"})):
        storage = cut(1, kind)
        with pytest.raises(UnavailableError, match=f"1:create:f: {kind}"):
            storage.create("f", b"x")
        assert storage.files() == expected
        assert storage.create("g", b"y"), "one fault, then the storage works again"


def test_a_lost_answer_hides_that_the_name_was_taken():
    storage = cut(1, FaultKind.FAIL_AFTER, start=prepared(f=b"old"))
    with pytest.raises(UnavailableError), storage.open_output("d/f"):
        pass
    assert storage.files() == {"d/f": b"old"}


def test_no_handler_of_exceptions_outlives_a_power_cut():
    storage = cut(2, FaultKind.POWER_CUT_BEFORE)
    storage.create("f", b"x")
    for _ in range(2):
        with pytest.raises(PowerCut):
            stubborn(storage)
    assert len(storage.log) == 2


def stubborn(storage):
    try:
        storage.read("f")
    except Exception:  # noqa: BLE001 - the point of the test
        return


def test_a_power_cut_before_or_after_a_create_leaves_all_or_nothing():
    for kind, expected in (
        (FaultKind.POWER_CUT_BEFORE, {}),
        (FaultKind.POWER_CUT_AFTER, {"f": b"x"}),
    ):
        assert outcomes(lambda storage: storage.create("f", b"x"), kind=kind) == [expected]


def test_a_torn_create_leaves_a_temporary_file_but_never_a_torn_target():
    disks = outcomes(lambda storage: storage.create("d/f", b"content"))
    assert {disk.get("d/f") for disk in disks} == {None, b"content"}
    for disk in disks:
        assert [name for name in disk if name.startswith("d/.f.") and name.endswith(".tmp")]


def test_a_torn_overwrite_leaves_old_new_or_nothing():
    disks = outcomes(lambda storage: storage.overwrite("d/f", b"new"), start=prepared(f=b"old"))
    assert {disk.pop("d/f") for disk in disks} == {b"", b"new", b"old"}
    for disk in disks:
        assert all(name.startswith("d/.f.") and name.endswith(".tmp") for name in disk)


def write_stream(storage):
    with storage.open_output("f") as stream:
        stream.write(b"0123")
        storage.exists("elsewhere")


@pytest.mark.parametrize(("at", "call"), [(2, "exists"), (3, "close_output")])
def test_an_unclosed_output_is_absent_or_a_torn_prefix(at, call):
    disks = outcomes(write_stream, at, kind=FaultKind.POWER_CUT_BEFORE)
    contents = {disk.get("f") for disk in disks}
    assert contents == {None, b"", b"0", b"01", b"012"}, call


def test_an_output_torn_while_closing_leaves_a_strict_prefix():
    assert {disk.get("f") for disk in outcomes(write_stream, 3)} == {b"", b"0", b"01", b"012"}


def test_a_closed_output_is_durable():
    assert outcomes(write_stream, 3, kind=FaultKind.POWER_CUT_AFTER) == [{"f": b"0123"}]


def test_a_failed_close_may_leave_a_torn_file_in_a_living_process():
    contents = set()
    for seed in range(200):
        storage = cut(3, FaultKind.FAIL_BEFORE, seed)
        with pytest.raises(UnavailableError):
            write_stream(storage)
        contents.add(storage.files().get("f"))
    assert contents == {None, b"", b"0", b"01", b"012"}


def test_a_process_that_dies_leaves_its_open_output_torn():
    storage = CrashableStorage(seed=1)
    with storage.open_output("f") as stream:
        stream.write(b"0123")
        assert storage.reopened().files().get("f") in {None, b"", b"0", b"01", b"012"}


def test_a_name_being_written_is_taken():
    storage = CrashableStorage()
    with (
        storage.open_output("f"),
        pytest.raises(AlreadyExistsError, match="f: the name is taken"),
        storage.open_output("f"),
    ):
        pass


def test_a_torn_directory_deletion_removes_some_of_the_files():
    start = prepared(a=b"", b=b"", c=b"")
    disks = outcomes(lambda storage: storage.delete_directory("d"), start=start)
    assert {} in disks
    assert {"d/a": b"", "d/b": b"", "d/c": b""} in disks
    assert len(disks) == 8


def test_a_power_cut_may_undo_the_latest_deletions():
    def delete_all(storage):
        for name in "abc":
            storage.delete(f"d/{name}")
        storage.exists("d/a")

    start = prepared(a=b"1", b=b"2", c=b"3")
    disks = outcomes(delete_all, 4, start, FaultKind.POWER_CUT_BEFORE)
    assert sorted("".join(disk) for disk in disks) == ["", "d/ad/bd/c", "d/bd/c", "d/c"]


def test_a_durable_call_makes_earlier_deletions_durable():
    def delete_and_create(storage):
        storage.delete("d/a")
        storage.create("d/b", b"2")
        storage.exists("d/a")

    start = prepared(a=b"1")
    disks = outcomes(delete_and_create, 3, start, FaultKind.POWER_CUT_BEFORE)
    assert disks == [{"d/b": b"2"}]


# Replaying and printing


def test_the_same_seed_leaves_the_same_bytes():
    def disks(seed):
        return [trial.run().reopened().files() for trial in every_fault(publish_counted, seed=seed)]

    assert disks(SEED) == disks(SEED)
    assert disks(SEED) != disks(SEED + 1)


def test_reopening_twice_gives_the_same_disk():
    for trial in every_fault(publish_counted, seed=SEED):
        trial.run()
        assert trial.reopened().files() == trial.reopened().files()


def test_the_log_can_be_printed():
    storage = CrashableStorage(Fault(9, FaultKind.FAIL_AFTER), seed=5)
    write_stream(storage)
    assert storage.trace() == "1:open_output:f\n2:exists:elsewhere\n3:close_output:f"
    assert repr(storage) == "CrashableStorage(fail_after at 9, seed=5, 3 calls)"


def test_trials_have_readable_ids():
    trials: list[Trial] = list(
        every_fault(lambda storage, _: storage.create("snapshot/snapshot-1", b"{}"))
    )
    assert [trial.id for trial in trials] == [
        "1:create:snapshot/snapshot-1:fail_before",
        "1:create:snapshot/snapshot-1:fail_after",
        "1:create:snapshot/snapshot-1:power_cut_before",
        "1:create:snapshot/snapshot-1:power_cut_after",
        "1:create:snapshot/snapshot-1:power_cut_torn",
    ]
    assert str(trials[0]) == "1:create:snapshot/snapshot-1:fail_before (seed 0)"


def test_trials_start_from_a_copy():
    start = prepared(f=b"old")
    trials: list[Trial] = list(
        every_fault(lambda storage, _: storage.delete_directory("d"), start=start)
    )
    for trial in trials:
        trial.run()
    assert start.files() == {"d/f": b"old"}


def test_an_error_that_does_not_follow_from_the_fault_names_its_trial():
    def confused(storage, _):
        try:
            storage.create("f", b"x")
        except UnavailableError:
            raise CorruptTableError("f") from None

    trial = next(every_fault(confused))
    with pytest.raises(CorruptTableError) as caught:
        trial.run()
    assert caught.value.__notes__ == ["in trial 1:create:f:fail_before (seed 0)"]


def test_a_scenario_that_changes_its_calls_is_refused():
    calls = iter([3, 1])

    def fickle(storage, _):
        for _ in range(next(calls)):
            storage.exists("f")

    trials: list[Trial] = list(every_fault(fickle))
    with pytest.raises(AssertionError, match="fewer calls"):
        trials[-1].run()
