"""The DEBS 2016 queries give what their rules say: worked examples, cases, and recomputation at every instant."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.data.places import data_file
from tests.papers.debs2016 import oracle, streams
from tests.profiles import examples
from trellis.errors import DataError, UsageError
from trellis.papers.debs2016 import Communities, communities, posts
from trellis.papers.debs2016.files import run_over

RARE = examples(60)
MANY = settings(max_examples=300)
CHANGES = ("exact", "deaths", "events")
NOBODY = ",-,-,-,-"


def day(number: str, clock: str = "00:00") -> str:
    return f"2010-{number}T{clock}:00.000+0000"


def second(number: float) -> str:
    return f"2010-12-22T02:14:{number:06.3f}+0000"


def file(*rows: str) -> bytes:
    return "".join(f"{row}\n" for row in rows).encode()


# --- Worked examples --------------------------------------------------------------------------------------------


def test_a_post_dies_as_another_comes() -> None:
    found = posts(file(f"{day('04-21')}|6|1|x|A B", f"{day('05-01')}|7|1|y|A B"), b"")
    assert found.output.decode().splitlines() == [
        f"{day('04-21')},6,A B,10,0{2 * NOBODY}",
        f"{day('05-01')},7,A B,10,0{2 * NOBODY}",
        f"{day('05-11')}{3 * NOBODY}",
    ]


@pytest.mark.parametrize("changes", CHANGES)
def test_what_cannot_be_used_is_as_if_it_had_not_come(changes: str) -> None:
    written = [f"{day('01-01')}|6|3|x|A", f"{day('01-07')}|5|2|x|B"]
    comments = [f"{day('01-05')}|1|4|y|M||6", f"{day('01-09')}|2|2|y|M||6"]
    usual = posts(file(*written), file(*comments), k=2, changes=changes)
    odd = [comments[0], f"{day('01-09')}|9|2|y|M||777", f"{day('01-09')}|8|2|y|M|999|", comments[1]]
    again = [*written, f"{day('01-08')}|5|2|x|B", "9999-12-31T00:00:00.000+0000|1|1|x|C"]
    found = posts(file(*again), file(*odd), k=2, changes=changes)
    assert found.output == usual.output
    bad = {name: number for name, number in found.bad.items() if number}
    assert bad == {
        "malformed posts": 1, "comments on unknown posts": 1, "replies to unknown comments": 1,
        "posts with a known id": 1,
    }  # fmt: skip


def test_the_dead_stay_dead() -> None:
    written = file(*(f"{day('09-15')}|{i}|1|x|A" for i in (15, 16)))
    comments = file(*(f"{day('10-23')}|{i}|2|x|B||{i}" for i in (15, 16)))
    found = posts(written, comments)
    assert found.output.decode().splitlines()[2:] == [f"{day('09-25')}{3 * NOBODY}"]
    assert (found.late, sum(found.bad.values())) == (2, 0)


@pytest.mark.parametrize("changes", CHANGES)
def test_ageing_alone_swaps_two_posts(changes: str) -> None:
    written = file(f"{day('01-01')}|1|1|x|Ann", f"{day('01-04', '12:00')}|2|2|y|Bob")
    comments = file(
        f"{day('01-01', '01:00')}|7|3|c|Cy||1", f"{day('01-01', '02:00')}|8|1|c|Ann|7|",
        f"{day('01-04', '13:00')}|9|3|c|Cy||2",
    )  # fmt: skip
    expected = [
        f"{day('01-01')},1,Ann,10,0{2 * NOBODY}",
        f"{day('01-04', '12:00')},1,Ann,21,1,2,Bob,10,0{NOBODY}",
        f"{day('01-05')},2,Bob,20,1,1,Ann,20,1{NOBODY}",
        f"{day('01-11', '02:00')},2,Bob,8,1{2 * NOBODY}",
        f"{day('01-14', '13:00')}{3 * NOBODY}",
    ]
    wanted = {"exact": expected, "deaths": expected[:2] + expected[3:], "events": expected[:2]}[changes]
    assert posts(written, comments, changes=changes).output.decode().splitlines() == wanted


def test_a_like_at_the_last_instant_counts() -> None:
    comments = file(f"{second(0)}|5|9|b, c|n||1")
    likes = file(f"{second(10)}|3|5", f"{second(10.001)}|4|5")
    found = communities(file(f"{second(20)}|1|2"), comments, likes, k=2, d=10)
    assert found.output.decode().splitlines() == [f"{second(10)},b, c,-", f"{second(10)},-,-"]
    assert found.late == 1


@pytest.mark.parametrize(("community", "when"), [("clique", 30), ("component", 14)])
def test_cliques_and_components(community: str, when: int) -> None:
    friends = file(*(f"{second(0)}|{a}|{b}" for a, b in ((1, 2), (2, 3), (4, 5))), f"{second(30)}|1|3")
    comments = file(f"{second(5)}|1|9|a|n||1", f"{second(5)}|2|9|b|n||1")
    likes = file(
        *(f"{second(10 + i)}|{user}|{c}" for i, (user, c) in enumerate([(4, 1), (5, 1), (1, 2), (2, 2), (3, 2)]))
    )
    found = communities(friends, comments, likes, k=1, d=1000, community=community)
    assert found.output.decode().splitlines() == [f"{second(10)},a", f"{second(when)},b"]


# --- Published cases --------------------------------------------------------------------------------------------


@pytest.mark.data
@pytest.mark.parametrize(
    ("case", "changes", "whole"),
    [
        ("case1", "exact", True), ("case1", "deaths", True), ("case3", "exact", True), ("case3", "deaths", True),
        ("Q1CommentCount", "exact", False), ("Q1CommentCount", "deaths", False), ("Q1CommentCount", "events", False),
        ("Q1PostExpiredComment", "events", True),
    ],
)  # fmt: skip
def test_cases_of_query_1(case: str, changes: str, whole: bool) -> None:
    folder = data_file("social", "debs2016_cases", "query1", case)
    found = posts(folder / "posts.dat", folder / "comments.dat", changes=changes).output.splitlines()
    expected = (folder / "expected.txt").read_bytes().splitlines()
    assert found[: len(expected)] == expected
    assert not whole or len(found) == len(expected)


@pytest.mark.data
@pytest.mark.parametrize("community", ["clique", "component"])
@pytest.mark.parametrize("case", ["official1", "course2019_T1", "course2019_T3"])
def test_cases_of_query_2(case: str, community: str) -> None:
    folder = data_file("social", "debs2016_cases", "query2", case)
    k, d = map(int, (folder / "k_d.txt").read_text().split())
    names = ("friendships", "comments", "likes")
    found = communities(*(folder / f"{name}.dat" for name in names), k=k, d=d, community=community)
    assert found.output.splitlines() == (folder / "expected.txt").read_bytes().splitlines()
    assert not sum(found.bad.values())


@pytest.mark.data
@pytest.mark.parametrize(("changes", "lines"), [("exact", 1810), ("deaths", 1613), ("events", 1569)])
def test_a_year_of_posts(changes: str, lines: int) -> None:
    folder = data_file("social", "ldbc")
    found = posts(folder / "posts.dat", folder / "comments.dat", changes=changes)
    assert found.lines == len(found.output.splitlines()) == lines
    assert not sum(found.bad.values())


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("community", ["clique", "component"])
@pytest.mark.parametrize("hours", [12, 7 * 24])
def test_a_year_of_likes(hours: int, community: str) -> None:
    folder = data_file("social", "ldbc")
    files = [(folder / f"{name}.dat").read_bytes() for name in ("friendships", "comments", "likes")]
    found = communities(*files, k=3, d=3600 * hours, community=community)
    wanted, bad = oracle.communities(*files, 3, 3600 * hours, community)
    assert found.output == wanted
    assert found.bad == bad


# --- Random streams ---------------------------------------------------------------------------------------------

QUERY_1 = st.tuples(
    streams.POSTS, streams.COMMENTS, st.integers(1, 4), st.sampled_from(CHANGES), st.integers(1, 300)
)  # fmt: skip
QUERY_2 = st.tuples(
    streams.FRIENDSHIPS, streams.QUICK_COMMENTS, streams.LIKES, st.integers(1, 4), st.integers(0, 8),
    st.sampled_from(["clique", "component"]), st.integers(1, 300),
)  # fmt: skip


def check_posts(written: bytes, comments: bytes, k: int, changes: str, chunk: int) -> None:
    wanted, bad = oracle.posts(written, comments, k, changes)
    found = posts(written, comments, k=k, changes=changes, chunk=chunk)
    assert found.output == wanted
    assert found.bad == bad
    assert found.lines == wanted.count(b"\n")


def check_communities(*given: Any) -> None:
    *files, k, d, community, chunk = given
    wanted, bad = oracle.communities(*files, k, d, community)
    found = communities(*files, k=k, d=d, community=community, chunk=chunk)
    assert found.output == wanted
    assert found.bad == bad


@RARE
@given(QUERY_1)
@example((b"", b"", 1, "exact", 1))
def test_query_1_is_the_recomputation(case: tuple[bytes, bytes, int, str, int]) -> None:
    check_posts(*case)


@RARE
@given(QUERY_2)
@example((b"", b"", b"", 1, 0, "clique", 1))
def test_query_2_is_the_recomputation(case: tuple[Any, ...]) -> None:
    check_communities(*case)


@pytest.mark.slow
@MANY
@given(QUERY_1)
def test_query_1_is_the_recomputation_often(case: tuple[bytes, bytes, int, str, int]) -> None:
    check_posts(*case)


@pytest.mark.slow
@MANY
@given(QUERY_2)
def test_query_2_is_the_recomputation_often(case: tuple[Any, ...]) -> None:
    check_communities(*case)


@examples(20)
@given(streams.FRIENDSHIPS, streams.QUICK_COMMENTS, streams.LIKES)
def test_the_published_search_gives_the_same(friends: bytes, comments: bytes, likes: bytes) -> None:
    outputs = []
    for as_published in (False, True):
        engine = Communities(2, 5, as_published=as_published)
        written = bytearray()
        run_over(engine, [friends, comments, likes], written.extend)
        outputs.append(bytes(written))
    assert outputs[0] == outputs[1]


# --- Bad input --------------------------------------------------------------------------------------------------


def test_what_is_bad_is_counted_by_kind() -> None:
    written = file(f"{day('01-02')}|1|1|x|Ann", f"{day('01-02')}|1|1|x|Ann", f"{day('01-01')}|2|1|x|Ann", "nonsense")
    comments = file(
        f"{day('01-01')}|1|2|before its post|n||1", f"{day('01-02')}|2|2|x|n||77", f"{day('01-02')}|3|2|x|n|66|",
        f"{day('01-02')}|4|2|a|b|n||1", f"{day('01-02')}|5|2|x|n||1",
    )  # fmt: skip
    found = posts(written, comments)
    assert {name: number for name, number in found.bad.items() if number} == {
        "malformed posts": 1, "posts out of order": 1, "malformed comments": 1, "comments on unknown posts": 2,
        "replies to unknown comments": 1, "posts with a known id": 1,
    }  # fmt: skip
    assert found.events == {"posts": 2, "comments": 4}
    assert b"1,Ann,10,0" in found.output


def test_ids_need_64_bits() -> None:
    large = 2**63 - 1
    written = file(f"{day('01-01')}|{large}|1|x|Ann", f"{day('01-01')}|-{large}|1|x|Ann")
    lines = posts(written, b"").output.decode().splitlines()
    assert lines[1] == f"{day('01-01')},{large},Ann,10,0,-{large},Ann,10,0{NOBODY}"


@pytest.mark.parametrize("size", [1, 1000, 200_000])
def test_long_texts_and_names(size: int) -> None:
    written = file(*(f"{day('01-01')}|{i}|1|x|{'n' * size}" for i in range(3)))
    assert posts(written, b"").output == oracle.posts(written, b"", 3, "exact")[0]
    comments = file(*(f"{day('01-01')}|{i}|1|{'t' * size}{i}|n||1" for i in range(3)))
    likes = file(*(f"{day('01-01')}|1|{i}" for i in range(3)))
    found = communities(b"", comments, likes, k=3, d=1)
    assert found.output == oracle.communities(b"", comments, likes, 3, 1, "clique")[0]


def test_files_may_be_open_and_must_be_there(tmp_path: Path) -> None:
    assert posts(io.BytesIO(b""), b"").lines == 0
    with pytest.raises(DataError, match=r"nowhere\.dat cannot be read"):
        posts(tmp_path / "nowhere.dat", b"")


@pytest.mark.parametrize("wrong", [{"k": 0}, {"changes": "exactly"}])
def test_wrong_options_of_posts(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        posts(b"", b"", **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [{"k": 0}, {"d": -1}, {"community": "clicque"}])
def test_wrong_options_of_communities(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        communities(b"", b"", b"", **({"k": 1, "d": 1} | wrong))  # type: ignore[arg-type]


def test_a_reader_of_the_lines_that_goes_away_is_no_mistake_in_a_file() -> None:
    def broken(_: object) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        posts(file(f"{day('01-01')}|1|1|x|Ann"), b"", write=broken)
