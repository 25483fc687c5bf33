"""Recorded seconds beside the clock: rows of one process, of several at once, and what the report says of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from pprop.study.cell import Cell, Seeds, make_cell
from pprop.study.experiment_folder import load_experiments
from pprop.study.store.row import Row
from pprop.study.store.store import Pool
from pprop.study.tables.clock import clock_sentence, clock_table, keys_of_shared, stretches
from pprop.study.tables.entries import Sample, Samples, entries
from pprop.study.tables.runs import cost_table
from pprop.study.tables.table import Strong
from pprop.study.tables.times import cost_sentences, main_cost_table

MakeRows = Callable[..., list[Row]]
NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)


def training(make_rows: MakeRows, cell: Cell, begin: float, seconds: float, first: int, **fields: object) -> list[Row]:
    """Ten rows of one training that takes these seconds, all stored as it ends."""
    created = (NOON + timedelta(seconds=begin + seconds)).isoformat()
    given = {"seconds": seconds / 10, "together": 10, "created": created, "device": "cuda (H200)", **fields}
    return make_rows(cell, seeds=[Seeds(first + place, 0) for place in range(10)], **given)


def test_one_process_after_another_records_what_passes_and_four_at_once_record_four_times_as_much(
    make_rows: MakeRows,
) -> None:
    cell = make_cell("gcn", {}, "citeseer")
    alone = [row for at in range(3) for row in training(make_rows, cell, 100.0 * at, 100.0, 10 * at)]
    later = [row for at in range(4) for row in training(make_rows, cell, 2000.0, 100.0, 100 + 10 * at)]
    elsewhere = training(make_rows, cell, 2000.0, 100.0, 500, device="cpu")
    first, second, third = stretches([*later, *alone, *elsewhere])
    assert (first.device, first.recorded, first.clock, first.shared) == ("cpu", 100.0, 100.0, False)
    assert (second.recorded, second.clock, second.shared, len(second.rows)) == (300.0, 300.0, False, 30)
    assert (third.recorded, third.clock, third.shared, len(third.rows)) == (400.0, 100.0, True, 40)
    assert second.begin == NOON
    assert keys_of_shared([first, second, third]) == {row.key for row in later}
    rows = [[str(value) for value in row] for group in clock_table([first, second, third]).groups for row in group.rows]
    assert rows[1:] == [
        ["2026-11-18 12:00", "30", "300", "300", "1.0", "yes"],
        ["2026-11-18 12:33", "40", "400", "100", "4.0", "no"],
    ]
    assert isinstance(clock_table([third]).groups[0].rows[0][-1], Strong)
    text = clock_sentence([first, second, third])
    assert (
        "40 of 80 rows come from several processes that shared one device: they have 400 seconds, while 100 passed."
        in text
    )
    assert "not for planning" not in clock_sentence([first, second])


def test_a_long_training_after_a_short_one_is_no_pause(make_rows: MakeRows) -> None:
    cell = make_cell("gcn", {}, "citeseer")
    short, long = training(make_rows, cell, 0.0, 5.0, 0), training(make_rows, cell, 5.0, 600.0, 10)
    (both,) = stretches([*short, *long])
    assert (both.clock, both.recorded) == (605.0, 605.0)
    after = training(make_rows, cell, 605.0 + 121.0, 5.0, 20)
    assert [len(one.rows) for one in stretches([*short, *long, *after])] == [20, 10]


def test_the_main_table_and_its_sentences_mark_seconds_of_shared_devices(make_rows: MakeRows) -> None:
    experiments = load_experiments()
    cell = make_cell("gcn", {}, "citeseer")
    rows = [*training(make_rows, cell, 0.0, 100.0, 0), *training(make_rows, cell, 0.0, 300.0, 10)]
    unfit = {row.key for row in rows[-10:]}
    seconds = sum(row.seconds for row in rows[-10:])
    main = entries(experiments, Samples([Sample(cell, Pool(cell, "c1", "d1", tuple(rows)))]))
    table = main_cost_table(main, experiments.values(), shared=unfit)
    place = [column.title for column in table.columns].index("Of these not for planning, s")
    assert [str(row[place]) for row in table.groups[0].rows] == [f"{seconds:.0f}"] * 2  # GCN, and all
    assert any(note.startswith("Not for planning: seconds of runs that shared the device") for note in table.notes)
    bare = main_cost_table(main, experiments.values())
    assert "Of these not for planning, s" not in [column.title for column in bare.columns]
    assert not any("Not for planning" in note for note in bare.notes)
    spent, authors = cost_sentences(main, experiments.values(), unfit)
    assert (
        f"{seconds:.0f} of these are of runs that shared the device with other processes (10 of GCN on Citeseer)."
        in spent
    )
    assert spent.endswith(" They are not for planning.")
    assert f"{seconds:.0f} of our seconds are of runs that shared the device, and not for planning." in authors
    assert all("not for planning" not in text for text in cost_sentences(main, experiments.values()))


def test_the_table_of_costs_marks_seconds_of_shared_devices(make_rows: MakeRows) -> None:
    cell = make_cell("gcn", {}, "citeseer")
    alone, shared = training(make_rows, cell, 0.0, 100.0, 0), training(make_rows, cell, 0.0, 300.0, 10)
    samples = Samples([Sample(cell, Pool(cell, "c1", "d1", (*alone, *shared)))])
    table = cost_table(samples, {row.key for row in shared})
    assert table.columns[-1].title == "Of these not for planning"
    assert [str(value) for value in table.groups[0].rows[0][-2:]] == ["400", "300"]
    assert cost_table(samples).columns[-1].title == "Seconds in all"
    assert [
        str(value) for value in cost_table(samples, {replace(shared[0].key, data="d2")}).groups[0].rows[0][-1:]
    ] == ["None"]
