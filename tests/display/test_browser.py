"""A real JupyterLab and the static report in headless Chromium: what readers meet.

Screenshots go to the folder that ``RAGDIAG_SCREENSHOTS`` names, if it does.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from ragdiag.comparison import Comparison
from ragdiag.display import html
from ragdiag.results import Results

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or "/usr/bin/chromium"
ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
START_SECONDS = 60
REPOSITORY = Path(__file__).parents[2]

spec = importlib.util.spec_from_file_location(
    "display_conftest", Path(__file__).with_name("conftest.py")
)
conftest = importlib.util.module_from_spec(spec)
spec.loader.exec_module(conftest)


def _unavailable() -> str:
    if not Path(CHROMIUM).exists():
        return "Chromium is not installed"
    for package in ("playwright", "axe_playwright_python", "jupyterlab"):
        if importlib.util.find_spec(package) is None:
            return f"{package} is not installed"
    return ""


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium; its absence skips, or fails under RAGDIAG_REQUIRE_BROWSER=1."""
    reason = _unavailable()
    if reason:
        if os.environ.get("RAGDIAG_REQUIRE_BROWSER") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield chromium
        chromium.close()


def shoot(page, name, **options):
    folder = os.environ.get("RAGDIAG_SCREENSHOTS")
    if folder:
        page.screenshot(path=str(Path(folder) / f"{name}.png"), **options)


def serious(page, context=None):
    """Return axe's serious and critical findings, as readable lines."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page, context=context).response["violations"]
    return [
        f"{each['id']}: {each['nodes'][0]['html'][:200]}"
        for each in found
        if each["impact"] in ("serious", "critical")
    ]


class Watch:
    """Everything a page must not do: dialogs, requests, errors."""

    def __init__(self, page, allowed="http://127.0.0.1"):
        self.dialogs, self.requests, self.errors = [], [], []
        page.on("dialog", self._dialog)
        page.on("request", lambda request: self._request(request.url, allowed))
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _dialog(self, dialog):
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def _request(self, url, allowed):
        if not url.startswith((allowed, "file://", "data:", "blob:", "about:")):
            self.requests.append(url)

    @property
    def quiet(self):
        return not (self.dialogs or self.requests or self.errors)


# --------------------------------------------------------------------------------- static report
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["results", "comparison"])
def test_the_report_filters_searches_and_is_accessible(
    browser, tmp_path, results, comparison, kind, scheme
):
    path = tmp_path / "report.html"
    (results if kind == "results" else comparison).to_html(path)
    page = browser.new_page(viewport={"width": 1000, "height": 900}, color_scheme=scheme)
    watch = Watch(page)
    page.goto(path.as_uri())
    shown = page.locator("output")
    assert shown.inner_text() == "showing 42 of 42"
    page.get_by_label("Query type").select_option("multi-hop")
    assert shown.inner_text() == "showing 10 of 42"
    page.get_by_label("Search").fill("dispute window")
    page.locator(".query:not([hidden]) > summary").first.click()
    assert page.locator(".query[open] .body").first.is_visible()
    shoot(page, f"report-{kind}-{scheme}", full_page=True)
    assert serious(page) == []
    assert watch.quiet
    page.close()


def test_the_report_reads_without_its_script_and_prints_open(browser, tmp_path, results):
    path = tmp_path / "report.html"
    results.to_html(path)
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(path.as_uri())
    assert not page.locator("form").is_visible()
    assert page.locator(".query").count() == 42
    page.locator("#query-3 > summary").click()
    assert page.locator("#query-3 .body").is_visible()
    context.close()
    page = browser.new_page()
    page.goto(path.as_uri())
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator(".query[open]").count() == 42
    page.close()


# ----------------------------------------------------------------------------------- hostile text
def test_the_hostile_corpus_is_inert_in_a_real_browser(browser, tmp_path, shared_data):
    """No dialog, no request, no element that a template did not write."""
    lines = conftest.hostile_lines(shared_data)
    ours = {
        *("html", "head", "body", "meta", "title", "style", "script", "header", "main", "footer"),
        *("h1", "h2", "h3", "div", "p", "strong", "span", "samp", "code", "b", "i", "svg", "rect"),
        *("table", "caption", "thead", "tbody", "tr", "th", "td", "details", "summary", "ul", "li"),
        *("form", "label", "select", "option", "input", "button", "output", "blockquote", "wbr"),
    }
    collect = "[...new Set([...document.querySelectorAll('*')].map(e => e.localName))]"
    handlers = (
        "[...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames())"
        ".filter(n => n.startsWith('on') || n === 'src' || n === 'href').length"
    )
    page = browser.new_page()
    page.set_default_timeout(90_000)
    watch = Watch(page)
    results = Results(conftest.make_hostile(lines))
    path = tmp_path / "report.html"
    results.to_html(path)
    page.goto(path.as_uri())
    page.get_by_role("button", name="Open all").click()
    assert set(page.evaluate(collect)) <= ours
    assert page.evaluate(handlers) == 0
    assert page.locator(".query").count() == len(lines)
    fragments = [html.render(item) for item in results[:: len(lines) // 60]]
    fragments += [html.render(obj) for obj in (results, Comparison(results, results), results.run)]
    page.set_content("<!doctype html><title>x</title>" + "".join(fragments))
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    page.wait_for_timeout(200)
    assert set(page.evaluate(collect)) <= ours
    assert page.evaluate(handlers) == 0
    assert page.locator("div.ragdiag").count() == len(fragments)
    assert watch.quiet, (watch.dialogs, watch.requests, watch.errors)
    page.close()


# -------------------------------------------------------------------------------------- JupyterLab
CELLS = [
    "import sys, importlib.util\n"
    "spec = importlib.util.spec_from_file_location('display_conftest', 'made.py')\n"
    "made = importlib.util.module_from_spec(spec); spec.loader.exec_module(made)\n"
    "from ragdiag.results import Results\n"
    "from ragdiag.comparison import Comparison\n"
    "dense, hybrid = map(Results, made.make_runs())\n"
    "comparison = Comparison(dense, hybrid)",
    "dense",
    "dense['q026']",
    "comparison",
    "explorer = dense.explore()\nexplorer",
    "pair_explorer = comparison.explore()\npair_explorer",
    "large = Results(made.make_large(5000))\nlarge_explorer = large.explore()\nlarge_explorer",
]


def _notebook():
    import nbformat

    notebook = nbformat.v4.new_notebook(
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    )
    notebook.cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
    return nbformat.writes(notebook)


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """JupyterLab on loopback, in a process group of its own that ends with the tests."""
    reason = _unavailable()
    if reason:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("lab")
    (folder / "shown.ipynb").write_text(_notebook(), encoding="utf-8")
    shutil.copy(Path(__file__).with_name("conftest.py"), folder / "made.py")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    own = {f"JUPYTER_{name}": str(folder / name.lower()) for name in ("CONFIG_DIR", "RUNTIME_DIR")}
    environment = {**os.environ, **own, "JUPYTERLAB_SETTINGS_DIR": str(folder / "settings")}
    # Every cell stays in the page, also those that are scrolled away; nobody asks about news.
    for name, setting in (
        ("notebook-extension/tracker", {"windowingMode": "none"}),
        ("apputils-extension/notification", {"fetchNews": "false", "checkForUpdates": False}),
    ):
        file = folder / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(setting), encoding="utf-8")
    environment["JUPYTERLAB_WORKSPACES_DIR"] = str(folder / "workspaces")
    environment["PYTHONPATH"] = os.pathsep.join(
        part for part in (str(REPOSITORY), os.environ.get("PYTHONPATH", "")) if part
    )
    command = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", "--expose-app-in-browser"),
        *("--ip=127.0.0.1", f"--port={port}", "--IdentityProvider.token=", "--allow-root"),
        *("--ServerApp.password=", "--ServerApp.disable_check_xsrf=True"),
        f"--ServerApp.root_dir={folder}",
        "--LabApp.news_url=None",
    ]
    log = (folder / "lab.log").open("w")
    process = subprocess.Popen(
        command, env=environment, stdout=log, stderr=log, start_new_session=True, cwd=folder
    )
    try:
        _wait(f"http://127.0.0.1:{port}/api", process, folder / "lab.log")
        yield f"http://127.0.0.1:{port}", folder
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=20)
        log.close()


def _wait(url, process, log):
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            time.sleep(0.2)
    pytest.fail(f"JupyterLab did not start: {log.read_text()[-2000:]}")


def _open(browser, url, name="shown.ipynb"):
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    page.set_default_timeout(90_000)
    page.goto(f"{url}/lab/tree/{name}?reset")
    page.wait_for_selector(".jp-Notebook .jp-CodeCell")
    page.wait_for_selector("#jupyterlab-splash", state="detached")
    return page


def _command(page, name, arguments=None):
    """Start a command of JupyterLab; its promise may outlive the test, so nobody waits for it."""
    page.evaluate(
        "([name, arguments]) => { jupyterapp.commands.execute(name, arguments); }",
        [name, arguments or {}],
    )


KERNEL_LISTENS = """() => {
  const context = jupyterapp.shell.currentWidget?.sessionContext;
  const kernel = context?.session?.kernel;
  return context?.isReady && kernel?.connectionStatus === "connected" && kernel.status === "idle";
}"""


def _theme(page, name):
    _command(page, "apputils:change-theme", {"theme": name})
    light = "true" if name == "JupyterLab Light" else "false"
    page.wait_for_selector(f"body[data-jp-theme-light='{light}']", state="attached")


def _outputs(page, theme):
    """Look at each of our outputs: screenshot and axe."""
    found = []
    for number, name in enumerate(("results", "query", "comparison", "explorer", "pair"), 1):
        cell = page.locator(".jp-Notebook > .jp-WindowedPanel-outer .jp-CodeCell, .jp-CodeCell")
        output = cell.nth(number).locator(".jp-Cell-outputArea")
        output.evaluate("element => element.scrollIntoView({block: 'start'})")
        shoot(page, f"lab-{name}-{theme}")
        output.evaluate("(element, name) => element.setAttribute('data-look', name)", name)
        found += [f"{name}: {line}" for line in serious(page, f"[data-look={name}] .ragdiag")]
    return found


def test_a_notebook_in_jupyterlab(browser, lab):
    """Run all, look in light and dark, step through the explorers, save, and reopen untrusted."""
    url, folder = lab
    page = _open(browser, url)
    watch = Watch(page, url)
    page.wait_for_function(KERNEL_LISTENS)
    page.evaluate("jupyterapp.shell.currentWidget.sessionContext.session.kernel.info")
    _command(page, "notebook:run-all-cells")
    large = page.locator(".jp-CodeCell").nth(6)
    try:
        large.get_by_text("showing 5,000 of 5,000").wait_for()
    finally:
        shoot(page, "lab")

    for theme in ("JupyterLab Light", "JupyterLab Dark"):
        _theme(page, theme)
        assert _outputs(page, theme.split()[1].lower()) == []

    explorer = page.locator(".jp-CodeCell").nth(4)
    body = explorer.locator(".widget-html .ragdiag")
    first = body.locator("strong").first.inner_text()
    explorer.get_by_role("button", name="Next").click()
    body.locator("strong", has_not_text=first).first.wait_for()
    explorer.get_by_text("2 of 42", exact=True).wait_for()
    explorer.get_by_label("Category").select_option("INSUFFICIENT_CONTEXT (5)")
    explorer.get_by_text("showing 5 of 42", exact=True).wait_for()
    explorer.get_by_label("Search").fill("dispute window")
    explorer.get_by_text("showing 1 of 42", exact=False).or_(
        explorer.get_by_text("showing 5 of 42", exact=False)
    ).first.wait_for()

    pair = page.locator(".jp-CodeCell").nth(5)
    pair.get_by_label("Outcome").select_option("regressed (3)")
    pair.get_by_text("showing 3 of 42", exact=True).wait_for()

    steps = []
    for position in range(2, 7):
        start = time.perf_counter()
        large.get_by_role("button", name="Next").click()
        large.get_by_text(f"{position} of 5,000", exact=True).wait_for()
        steps.append(1000 * (time.perf_counter() - start))
    print(f"stepping through 5,000 queries: {sorted(steps)[2]:.0f} ms at the median")

    _command(page, "docmanager:save")
    saved = folder / "shown.ipynb"
    page.wait_for_function("() => !document.querySelector('.jp-mod-dirty')")
    end = time.monotonic() + 20
    while "widget-view" not in saved.read_text(encoding="utf-8") and time.monotonic() < end:
        time.sleep(0.2)
    assert watch.quiet, (watch.dialogs, watch.requests, watch.errors)
    page.close()

    notebook = json.loads(saved.read_text(encoding="utf-8"))
    assert "text/html" in notebook["cells"][4]["outputs"][0]["data"]
    _reopen_untrusted(browser, url, folder, notebook)


def _reopen_untrusted(browser, url, folder, notebook):
    """Open the saved notebook as a stranger's: sanitised, without a kernel's widgets."""
    notebook["metadata"].pop("signature", None)
    for cell in notebook["cells"]:
        cell["source"] = [*cell["source"], "\n# sent by mail"]
        cell["metadata"]["trusted"] = False
    (folder / "stranger.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    page = _open(browser, url, "stranger.ipynb")
    _theme(page, "JupyterLab Light")
    output = page.locator(".jp-CodeCell").nth(1).locator(".jp-OutputArea-output").first
    output.get_by_text("22 of 42 passed").first.wait_for()
    assert output.locator("style").count() == 0
    assert output.locator("caption").count() >= 3
    shoot(page, "untrusted-results")
    explorer = page.locator(".jp-CodeCell").nth(4)
    explorer.scroll_into_view_if_needed()
    explorer.get_by_text("22 of 42 passed").first.wait_for()
    page.close()
