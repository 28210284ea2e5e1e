"""Check pages in a real browser: no error on the console, filled tables, and a search that shows the path of the
tables.
"""

import html
import json
import re
import shutil
import subprocess

import pytest

from routing.deadlock.proof import prove
from routing.draw import page_text, picture_of
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.formats.csv_table import Table
from routing.topologies import generate

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [pytest.mark.browser, pytest.mark.skipif(BROWSER is None, reason="needs chromium: apt install chromium")]

DRIVER = """<script>
addEventListener("load", async () => {
  const until = async (test) => { while (!test()) await new Promise((next) => setTimeout(next, 20)); };
  const answer = document.getElementById("answer"), byId = (id) => document.getElementById(id);
  const found = {};
  await until(() => document.documentElement.dataset.ready && document.querySelector("#tables details"));
  ACTIONS
  const result = document.createElement("pre");
  result.id = "result";
  result.textContent = JSON.stringify(found);
  document.body.append(result);
});
</script>"""


def browse(page, actions, folder):
    """Open a page, run actions in it, and return what they stored in `found`."""
    path = folder / "page.html"
    path.write_text(page + DRIVER.replace("ACTIONS", actions))
    done = subprocess.run(
        [
            BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0",
            f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=20000", "--dump-dom", path.as_uri(),
        ],
        check=True, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert re.findall(r".*CONSOLE.*", done.stderr) == []
    result = re.search(r'<pre id="result">(.*?)</pre>', done.stdout, re.DOTALL)
    assert result is not None, done.stdout[-2000:]
    return json.loads(html.unescape(result[1]))


def hops(fabric, lft, source, lid):
    """Return the names of the switches on a path, which is followed entry by entry."""
    here, names = source, [fabric.switch_name[source]]
    while here != fabric.lids.switch[lid]:
        here = int(fabric.channels.dst[fabric.channels.at_port[here, lft[here, lid]]])
        names.append(fabric.switch_name[here])
    return names


SEARCH = """
  byId("to").value = TO; byId("from").value = FROM;
  byId("search").requestSubmit();
  await until(() => answer.textContent.includes("hops"));
  found.path = answer.textContent;
  found.marks = byId("marks").children.length;
  byId("from").value = ""; answer.textContent = "";
  byId("search").requestSubmit();
  await until(() => answer.textContent.includes("hops"));
  found.tree = answer.textContent;
  byId("to").value = "no such thing";
  byId("search").requestSubmit();
  await until(() => answer.textContent.includes("Nothing"));
"""


def test_a_search_shows_the_path_of_the_tables(tmp_path):
    fabric = generate("torus", ["4x3"], cas=2)
    routing = ENGINES["nue"].route(fabric, EngineOptions(vls=2))
    source, endport = 5, fabric.endports - 1
    words = {"TO": json.dumps(fabric.endport_label[endport]), "FROM": json.dumps(fabric.switch_name[source])}
    actions = SEARCH.replace("TO", words["TO"]).replace("FROM", words["FROM"])
    found = browse(page_text("t", picture=picture_of(fabric, routing)), actions, tmp_path)
    shown = found["path"].splitlines()[-1]
    path = hops(fabric, routing.lft, source, int(fabric.endport_lid[endport]))
    assert re.sub(r" port \d+", "", shown) == f"{len(path) - 1} hops: {' → '.join(path)}"
    assert found["marks"] == 3
    counts = dict(map(int, pair.split(" in ")[::-1]) for pair in re.findall(r"\d+ in \d+", found["tree"]))
    slow = [len(hops(fabric, routing.lft, row, int(fabric.endport_lid[endport]))) - 1 for row in range(12)]
    assert counts == {number: slow.count(number) for number in set(slow)}


ONE_HOP = """
  byId("to").value = "sw1.0"; byId("from").value = "sw0.0";
  byId("search").requestSubmit();
  await until(() => answer.textContent.includes("→"));
  found.path = answer.textContent.split("\\n").pop();
"""


def test_a_path_of_one_hop_has_a_hop(tmp_path):
    fabric = generate("mesh", ["2x1"])
    page = page_text("t", picture=picture_of(fabric, ENGINES["updn"].route(fabric, EngineOptions(effort=0.05))))
    assert re.fullmatch(r"1 hop: \S+ port \d+ → \S+", browse(page, ONE_HOP, tmp_path)["path"])


SPINE = """
  byId("to").value = "TOP"; byId("search").requestSubmit();
  await until(() => answer.textContent.includes("TOP"));
  found.answer = answer.textContent;
"""


def test_a_search_for_a_switch_without_cas_says_why_it_shows_no_path(tmp_path):
    fabric = generate("kary-ntree", ["2", "2"])
    top = fabric.switch_name[int((fabric.terminals_at[: fabric.switches] == 0).argmax())]
    page = page_text("t", picture=picture_of(fabric, ENGINES["updn"].route(fabric, EngineOptions(effort=0.05))))
    found = browse(page, SPINE.replace("TOP", top), tmp_path)
    assert found["answer"] == f"{top}. The switch has no CA, and the page has only the paths to CAs."


TABLES = """
  for (const box of document.querySelectorAll("#tables details")) box.open = true;
  await until(() => document.querySelectorAll("#tables table").length === 4);
  found.rows = [...document.querySelectorAll("#tables tbody")].map((body) => body.children.length);
  const first = document.querySelector("#tables details");
  const column = () => [...first.querySelectorAll("tbody td:first-child")].map((cell) => cell.textContent);
  first.querySelector("th button").click();
  found.up = column();
  first.querySelector("th button").click();
  found.down = column();
  const filter = first.querySelector("input");
  filter.value = "b"; filter.dispatchEvent(new Event("input"));
  found.filtered = column();
  document.querySelectorAll("#tables td a")[2].click();
  found.focus = document.activeElement.id;
  document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
  found.next = document.activeElement.id;
  const before = byId("net").getAttribute("viewBox");
  byId("in").click();
  found.zoomed = before !== byId("net").getAttribute("viewBox");
  byId("whole").click();
  const numbers = (text) => text.split(" ").map(Number).join();
  found.whole = numbers(byId("net").getAttribute("viewBox")) === numbers(before);
  found.loop = answer.textContent;
"""


def test_tables_are_sorted_and_filtered_and_lead_to_the_picture(tmp_path):
    fabric = generate("ring", ["6"])
    routing = ENGINES["minhop"].route(fabric, EngineOptions())
    loop = prove(fabric, routing).credit_loop
    table = Table("Own", ("name", "x"), (("b10", 1), ("a", None), ("b9", 3)))
    found = browse(page_text("t", [], [table], picture_of(fabric, routing, loop=loop)), TABLES, tmp_path)
    assert found["rows"] == [3, 6, 6, 6]
    assert found["up"] == ["a", "b9", "b10"]
    assert found["down"] == ["b10", "b9", "a"]
    assert found["filtered"] == ["b10", "b9"]
    assert found["focus"] == "s2"
    assert found["next"].startswith("s") and found["next"] != "s2"
    assert found["zoomed"] and found["whole"]
    assert found["loop"] == "\n".join(loop.describe())
