"""Two to six actors on one table, call by call in an order a seed decides; a dict knows the rows.

``SEED=7 INTERLEAVINGS=1`` runs the one of that seed; ``INTERLEAVINGS=5000`` runs many more.
"""

from __future__ import annotations

from random import Random

import pytest

import lakeformat as lake
from tests.crash import append_actors, keyed_actors
from tests.crash.interleaved import Expirer, World
from tests.paper import commit, file, head, live, message, paper_table
from tests.sampling import SEED, count

INTERLEAVINGS = count(5, 96, "INTERLEAVINGS")
BLOCKS = min(8, INTERLEAVINGS)

KEYED = (
    keyed_actors.Upserter,
    keyed_actors.Upserter,
    keyed_actors.Overwriter,
    keyed_actors.Rewriter,
    keyed_actors.Compactor,
    keyed_actors.Compactor,
    keyed_actors.Twin,
    Expirer,
)
APPEND = (
    append_actors.Appender,
    append_actors.Appender,
    append_actors.Replacer,
    append_actors.Concatenator,
    append_actors.Concatenator,
    Expirer,
)


def run(seed: int, *, keyed: bool) -> World:
    """One interleaving of a few actors; at least one always writes."""
    chance = Random(f"{seed}:actors")
    kinds = KEYED if keyed else APPEND
    world = World(seed, keyed=keyed)
    chosen = [kinds[0], *chance.sample(kinds[1:], chance.randint(1, 4))]
    if keyed_actors.Twin in chosen:
        chosen.append(keyed_actors.Twin)
    for number, kind in enumerate(chosen):
        name = f"{kind.__name__}-{number}"
        user = "twin" if kind is keyed_actors.Twin else name
        actor = kind(world, name, chance.randint(1, 4), Random(f"{seed}:{name}"), user)
        world.scheduler.add(name, actor.act)
    world.run((keyed_actors if keyed else append_actors).rows_of)
    return world


def run_block(block: int, *, keyed: bool) -> list[World]:
    done = []
    for seed in range(SEED + block, SEED + INTERLEAVINGS, BLOCKS):
        try:
            done.append(run(seed, keyed=keyed))
        except BaseException as error:
            error.add_note(f"replay with SEED={seed} INTERLEAVINGS=1")
            raise
    return done


@pytest.mark.parametrize("block", range(BLOCKS))
def test_every_snapshot_of_a_keyed_table_holds_what_the_dict_holds(block):
    print(f"SEED={SEED} INTERLEAVINGS={INTERLEAVINGS}")
    done = run_block(block, keyed=True)
    print(
        f"{len(done)} interleavings, {sum(len(world.states) - 1 for world in done)} snapshots, "
        f"{sum(world.compacted for world in done)} compactions, "
        f"{sum(world.refused for world in done)} refused, "
        f"{sum(world.expired for world in done)} expired"
    )
    assert all(world.published for world in done), "each published snapshots, all were compared"


@pytest.mark.parametrize("block", range(BLOCKS))
def test_every_snapshot_of_an_append_table_holds_what_the_dict_holds(block):
    print(f"SEED={SEED} INTERLEAVINGS={INTERLEAVINGS}")
    done = run_block(block, keyed=False)
    assert all(world.published for world in done), "each published snapshots, all were compared"


def test_a_seed_decides_every_call():
    first, again, other = (run(seed, keyed=True) for seed in (3, 3, 4))
    assert first.scheduler.trace == again.scheduler.trace
    assert first.scheduler.trace != other.scheduler.trace


def test_a_compaction_planned_on_an_expired_snapshot_is_checked_against_the_head():
    orders = paper_table(keyed=True)
    one, two = file("a"), file("b")
    commit(orders, message(orders, one, two))
    for name in "cde":
        commit(orders, message(orders, file(name)))
    for number in (1, 2, 3):
        orders.storage.delete(orders.layout.snapshot(number))
    commit(orders, message(orders, compact_before=[one, two], compact_after=[file("m", level=5)]))
    assert live(orders) == ["c", "d", "e", "m@5"]
    with pytest.raises(lake.CommitConflictError, match="not in the table any more: a, b"):
        commit(orders, message(orders, compact_before=[one, two], compact_after=[file("n")]))
    assert head(orders).id == 5
