"""The report: one file that needs no network, shows markup as text, and is clicked through in a real browser."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import trellis
from tests.cli.cases import assert_mistake, run_local
from trellis.report.page import SCRIPT
from trellis.report.report import report_text

MARKUP = "</script><img src=x onerror=alert(1)>"
QUERY = trellis.query("PATTERN S+ s[] WHERE [g] AND s[i].price > s[i-1].price REPORT maximal")
EVENTS = {"ts": [1, 2, 3, 4], "id": ["a", "b", "c", MARKUP], "g": [MARKUP] * 4, "price": [10.0, 30.0, 20.0, 40.0]}


def data_of(text: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_the_data_are_the_results() -> None:
    trends = QUERY.detect(pa.table(EVENTS), event_id="id")
    data = data_of(report_text(trends))
    assert [[event["name"] for event in events] for events in data["events"]] == [trend.ids for trend in trends]
    assert [[event["y"] for event in events] for events in data["events"]] == [[10, 30, 40], [10, 20, 40]]
    assert data["reasons"][1] == [str(check) for check in trends[1].explain()]
    assert [row["length"] for row in data["rows"]] == ["3", "3"]


def test_markup_is_text_and_nothing_is_loaded() -> None:
    text = report_text(QUERY.detect(pa.table(EVENTS), event_id="id"))
    assert MARKUP not in text
    assert "<img" not in text
    assert not re.search(r"<[^>]*(src|href)=", text)
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'" in text
    assert text.count("<script") == 2


def test_large_results_are_sampled_and_it_says_so() -> None:
    table = pa.table({"ts": np.arange(40), "price": np.arange(40.0), "g": ["x"] * 40})
    trends = trellis.query("PATTERN S+ s[] WHERE [g] AND s[i].price > s[i-1].price REPORT any").detect(table)
    text = report_text(trends, 20)
    assert "20 of them are below, drawn by chance." in text
    assert "1099511627775" in text.replace(",", "")
    assert len(data_of(text)["rows"]) == 20


def test_a_file_is_not_replaced_by_accident(tmp_path: Path) -> None:
    trends = QUERY.detect(pa.table(EVENTS), event_id="id")
    file = tmp_path / "report.html"
    trends.report(file)
    with pytest.raises(trellis.UsageError, match="exists"):
        trends.report(file)
    trends.report(file, overwrite=True)
    with pytest.raises(trellis.UsageError, match="lies in a folder that does not exist"):
        trends.report(tmp_path / "none" / "report.html")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_on_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "prices.csv"
    file.write_text("ts,id,price\n1,a,10\n2,b,30\n3,c,20\n")
    out = tmp_path / "r.html"
    text = "PATTERN S+ s[] WHERE s[i].price > s[i-1].price"
    done = run_local("report", text, file, "--event-id", "id", "--out", out)
    assert (done.code, done.out) == (0, f"written: {out}\n"), done.err
    assert len(data_of(out.read_text())["rows"]) == 2
    assert_mistake(run_local("report", text, file, "--out", out), "exists", "--overwrite")


def test_the_same_on_spark(spark: SparkSession) -> None:
    table = pa.table(EVENTS)
    here = data_of(report_text(QUERY.detect(table, event_id="id")))
    there = data_of(report_text(QUERY.detect(table, event_id="id", engine="spark", spark=spark)))
    assert there == here


# --- In a browser -----------------------------------------------------------------------------------------------

DRIVER = """{
const say = text => { document.title += '|' + text; };
say(document.getElementById('found').textContent);
const search = document.getElementById('search');
search.value = 'WANTED'; search.dispatchEvent(new Event('input'));
say(document.getElementById('found').textContent);
search.value = ''; search.dispatchEvent(new Event('input'));
document.querySelectorAll('#head th')[LENGTH].click(); document.querySelectorAll('#head th')[LENGTH].click();
say(document.querySelector('#rows tr').children[LENGTH].textContent);
document.querySelector('#rows tr').click();
say(document.querySelectorAll('#picture circle').length);
say(document.querySelectorAll('#why li').length);
say(document.querySelectorAll('#events tr').length);
say(document.images.length);
say(performance.now() < 2000);
}"""


def chromium() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("there is no Chromium here: `apt-get install chromium` gets one")
    return found


def driven(text: str, driver: str) -> str:
    """The page with a script of the test behind its own, which its policy would not let run."""
    digest = base64.b64encode(hashlib.sha256(driver.encode()).digest()).decode()
    allowed = text.replace("script-src ", f"script-src 'sha256-{digest}' ", 1)
    return allowed.replace("</body>", f"<script>{driver}</script></body>")


def browse(page: Path) -> tuple[list[str], str]:
    """What the driver said in the title of a page, and what the console said."""
    done = subprocess.run(
        [
            chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--enable-logging=stderr",
            f"--user-data-dir={page.parent / 'profile'}", "--dump-dom", page.as_uri(),
        ],
        capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    title = re.search(r"<title>(.*?)</title>", done.stdout, re.DOTALL)
    assert title is not None
    return title[1].split("|")[1:], "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)


@pytest.mark.slow
def test_a_browser_searches_sorts_and_draws(tmp_path: Path) -> None:
    trends = QUERY.detect(pa.table(EVENTS), event_id="id")
    text = report_text(trends)
    length = data_of(text)["columns"].index("length")
    page = tmp_path / "report.html"
    page.write_text(driven(text, DRIVER.replace("LENGTH", str(length)).replace("WANTED", "a, b")))
    said, console = browse(page)
    assert said == [
        "2 of 2 trends, page 1 of 1", "1 of 2 trends, page 1 of 1", "3", "3", "3", "3", "0", "true",
    ]  # fmt: skip
    assert console == ""


@pytest.mark.slow
def test_a_browser_refuses_scripts_of_others(tmp_path: Path) -> None:
    text = report_text(QUERY.detect(pa.table(EVENTS), event_id="id"))
    page = tmp_path / "report.html"
    page.write_text(text.replace("</body>", "<script>document.title += '|foreign'</script></body>"))
    said, console = browse(page)
    assert said == []
    assert "Content Security Policy" in console


@pytest.mark.slow
def test_ten_thousand_trends_open_soon(tmp_path: Path) -> None:
    n = 10_000
    table = pa.table({"ts": np.arange(n), "price": np.arange(n) % 7, "g": np.arange(n) // 2})
    trends = trellis.query("PATTERN S+ s[] WHERE [g] AND s[i].price > s[i-1].price REPORT any").detect(table)
    begin = time.perf_counter()
    text = report_text(trends)
    assert time.perf_counter() - begin < 120
    assert len(data_of(text)["rows"]) == 10_000
    length = data_of(text)["columns"].index("length")
    page = tmp_path / "report.html"
    page.write_text(driven(text, DRIVER.replace("LENGTH", str(length)).replace("WANTED", "4,999")))
    said, console = browse(page)
    assert said[0].startswith("10,000 of 10,000 trends, page 1 of 200")
    assert said[-1] == "true"
    assert console == ""


def test_a_pattern_with_groups_has_a_report_too() -> None:
    table = pa.table({"ts": range(4), "id": list("abcd"), "kind": list("ABAB")})
    trends = trellis.query("PATTERN SEQ(A a, B b)+ g[]").detect(table, event_id="id", type="kind")
    told = data_of(report_text(trends))
    assert len(told["rows"]) == len(trends)
    assert told["reasons"][0] == ["every event of its type matches"]
