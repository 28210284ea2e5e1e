"""Run a sequence of OpenSM processes on one fabric, and compare their log with the tables in the switches.

For each change of tables, the log states the number of changed entries, and whether any order of writing is safe.
"""

import contextlib
import json
import random
import re
import shutil
import signal
from collections import Counter

import networkx as nx
import numpy as np
from plugin_lab import ample_timeouts
from slow_mixed import transition_slowly
from waiting import until

from ibsim_fixtures import mad_client
from ibsim_fixtures.ibsim import Ibsim
from ibsim_fixtures.opensm import OpenSM, Plugin
from ibsim_fixtures.opensm_log import EventKind
from ibsim_fixtures.processes import tail
from ibsim_fixtures.readback import owners, switch_lfts
from routing.formats.fabric_files import read_fabric
from routing.tables import Provenance, Routing

HASTY = {"sminfo_polling_timeout": 200, "polling_retry_number": 2, "sweep_on_trap": False}
"""Settings of OpenSM.  A sweep because of a trap could write the dumps again while they are read."""
ROUTED = re.compile(r"ibnue-(\w+): fabric [0-9a-f]{12}: .*")
ENTRIES = re.compile(r"; (\d+) entr(?:y changes|ies change) in the switches;")
UNKNOWN = 255
ANY_ORDER = "safe to write in any order"


class History:
    """OpenSM processes on two hosts of one fabric, which run one after the other, or as master and standby.

    Attributes
    ----------
    counts
        Numbers of steps and of changes, and of the statements in the log about them.
    complaints
        Statements in the log that the tables in the switches contradict.
    """

    def __init__(self, net, plugin_folder, folder, *, engine="updn", vls=1, seed=0):
        self.ibsim = Ibsim(net)
        self.folder, self.engine, self.vls = folder, engine, vls
        self.random = random.Random(seed)
        self.counts, self.complaints = Counter(), []
        self._plugin_folder = plugin_folder
        self._hosts = ("ca0.0.0", "ca3.3.0")
        self._host, self._opensm, self._stack = 0, None, contextlib.ExitStack()
        self._priority = 14
        fabric = read_fabric(net)
        channels, self._pulled = fabric.channels, []
        first = [int(np.flatnonzero(channels.link == link)[0]) for link in np.unique(channels.link)]
        self._cables = [(fabric.switch_name[channels.src[c]], int(channels.port[c])) for c in first]
        # The loss of a CA leaves entries towards a LID that no port has any more.
        self._cables += [(name, 1) for name in fabric.terminal_name if name not in self._hosts]
        self._sls = None
        self._lfts = {}

    def __enter__(self):
        self._stack.enter_context(self.ibsim)
        return self

    def __exit__(self, kind, error, trace):
        if kind is not None and self._opensm is not None:
            # The logs are removed with the fabric.
            print("end of the log:", tail(self._opensm.log_path, 60), sep="\n")  # noqa: T201
        self._stack.close()

    @property
    def log(self):
        """Text of the log that the current OpenSM has written so far."""
        return self._opensm.log_path.read_text() if self._opensm.log_path.exists() else ""

    @property
    def state_path(self):
        """Path of the state file of the current OpenSM."""
        return self.folder / f"state{self._host}.npz"

    def status(self):
        """Return the content of the status file of the current OpenSM."""
        return json.loads((self.folder / f"status{self._host}.json").read_text())

    # Methods that cause the events of a history.

    def configure(self, *, roots=None, state=True, broken=False):
        """Write the plugin's configuration for the current host.

        Parameters
        ----------
        roots
            Name of the root switch, or a text that determines the seed of an engine without roots.
        state
            Whether the plugin keeps a state file.
        broken
            Whether to add an option with which the engine cannot route the fabric.
        """
        host = self._host
        name = f"'{self.folder}/state{host}.npz'" if state else "false"
        # Engines without roots compute other tables if they get another seed.
        other = f"roots = ['{roots}']" if self.engine == "updn" else f"seed = {sum(map(ord, roots or ''))}"
        options = [other] * bool(roots) + ["vls = 15"] * broken
        files = [f"state_file = {name}", f"status_file = '{self.folder}/status{host}.json'"]
        text = [*files, "round_wait = 0.02", f"[engine.{self.engine}]", *options]
        (self.folder / f"ibnue{host}.toml").write_text(ample_timeouts("\n".join(text) + "\n"))

    def start(self, *, routing_engine=None, **options):
        """Start OpenSM on the current host with a new configuration, and wait for its sweep."""
        self.configure(**options)
        self._priority = 14
        with self.judged("start"):
            self._opensm = self._stack.enter_context(self._made(routing_engine))

    def start_unheard(self, **options):
        """Start OpenSM without waiting for the end of its sweep, because its configuration lets no sweep end."""
        self.configure(**options)
        self._opensm = self._stack.enter_context(self._made(None, wait=False))

    def end(self, *, kill=False):
        """End OpenSM, by SIGKILL if ``kill``, otherwise by SIGTERM."""
        self._opensm.signal(signal.SIGKILL if kill else signal.SIGTERM)
        self._opensm.wait_for_exit()
        self._opensm.stop()

    def restart(self, *, kill=False, fault=False, **options):
        """End OpenSM and start it again on the same host.  If ``fault``, pull a cable in between."""
        self.end(kill=kill)
        if fault:
            self.pull()
        self.start(**options)

    def sweep(self, what="sweep", change=None):
        """Call ``change``, let OpenSM sweep, and check the statements in its log."""
        with self.judged(what):
            if change is not None:
                change()
            self._opensm.resweep()

    def pull(self):
        """Pull a random cable, either between two switches or at a CA, unless three cables are out already."""
        if len(self._pulled) < 3:
            cable = self.random.choice([each for each in self._cables if each not in self._pulled])
            self._pulled.append(cable)
            self.ibsim.unlink(*cable)

    def lose(self, switch):
        """Pull all cables of a switch."""
        self.ibsim.unlink(switch)
        self._pulled.append((switch,))

    def put_back(self):
        """Put back a random cable that was pulled."""
        if self._pulled:
            self.ibsim.relink(*self._pulled.pop(self.random.randrange(len(self._pulled))))

    def hand_over(self, *, kill=False, fault=False, **options):
        """Start a standby OpenSM on the other host, end the master, and wait until the standby has taken over."""
        master, self._host = self._opensm, 1 - self._host
        self.configure(**options)
        self._priority -= 1  # The lower priority makes the new OpenSM a standby until the master ends.
        # Queries never time out on ibsim. Each OpenSM is paused while the other one starts or ends, so that no query
        # stays unanswered.
        standby = self._stack.enter_context(self._made(None, wait=False))
        with master.paused():
            standby.wait_for(lambda events: any(e.kind is EventKind.HEAVY_SWEEP for e in events), what="a sweep")
        standby.wait_for(lambda events: any("Entering STANDBY" in e.text for e in events), what="STANDBY")
        until(lambda: self.status()["opensm"]["state"] == "standby")
        self._opensm = standby
        position = standby.mark()
        with self.judged("hand over"):
            with standby.paused():
                # The master answers queries in their order. Once it has answered this query, it has answered the
                # standby, too.
                self.ibsim.run("sminfo")
                if kill:
                    master.signal(signal.SIGKILL)
                    master.wait_for_exit()
                master.stop()
                if fault:
                    self.pull()
            standby.wait_for_subnet_up(after=position)

    def keep_state(self, path):
        """Copy the state file to ``path`` as soon as it exists."""
        until(self.state_path.exists)
        shutil.copyfile(self.state_path, path)

    def _made(self, routing_engine, *, wait=True):
        options = f"--config {self.folder}/ibnue{self._host}.toml"
        plugin = Plugin("ibnue", options=options, folder=self._plugin_folder)
        config = {**HASTY, "qos": self.vls > 1, "sm_priority": self._priority}
        if routing_engine is not None and "root" in routing_engine:
            roots = self.folder / "roots"
            roots.write_text(f"{self.ibsim.device('sw0.0').guid:#x}\n")
            routing_engine, config = f"ibnue-{self.engine},updn", {**config, "root_guid_file": roots}
        host, engine = self._hosts[self._host], routing_engine or f"ibnue-{self.engine},no_fallback"
        return OpenSM(self.ibsim, routing_engine=engine, plugin=plugin, config=config, host=host, wait=wait)

    # Methods that compare the statements in the log with the tables in the switches.

    @contextlib.contextmanager
    def judged(self, what):
        """Check the log lines that OpenSM writes in the body of this context.

        The lines are compared with the tables that the switches hold before and after the body.
        """
        # A switch that is lost keeps its tables until it returns.
        before, sls = {**self._lfts, **switch_lfts(self.ibsim)}, self._sls
        known = len(self.log) if self._opensm is not None and what != "start" else 0
        yield
        now = switch_lfts(self.ibsim)
        self._lfts = {**before, **now}
        self._sls = self._asked_sls()
        lines = [match[0] for match in ROUTED.finditer(self.log, known)]
        self.counts[f"step: {what}"] += 1
        self._judge(what, lines, before, now, (sls, self._sls))

    def _asked_sls(self):
        if self.vls == 1:
            return None
        found = owners(self._opensm.folder)
        lids = [owner.lid for owner in found]
        sm_guid = self.ibsim.device(self._hosts[self._host]).guid
        pairs = [(a, b) for a in lids for b in lids if a != b]
        answers, _ = mad_client.ask(
            self.ibsim, sm_lid=next(owner.lid for owner in found if owner.guid == sm_guid), paths=pairs
        )
        table = np.full((1 + max(lids), 1 + max(lids)), UNKNOWN, np.uint8)
        for (source, to), sl in zip(pairs, answers, strict=True):
            table[source, to] = UNKNOWN if sl is None else sl
        return table

    def _judge(self, what, lines, before, now, sls):
        entries = [int(found[1]) if (found := ENTRIES.search(line)) else 0 for line in lines]
        changed = sum(
            before.get(guid, {}).get(lid, 255) != now.get(guid, {}).get(lid, 255)
            for guid in now
            for lid in {*before.get(guid, {}), *now.get(guid, {})}
        )
        if lines and np.count_nonzero(entries) <= 1:
            self.counts["counts compared"] += 1
            if sum(entries) != changed:
                self._complain(f"{what}: {changed} entries changed: {lines}")
        elif lines:
            self.counts["several changes in one step"] += 1
        words = next((line for line, count in zip(lines, entries, strict=True) if count), "")
        if changed and words and np.count_nonzero(entries) == 1:
            self._judge_words(what, words, before, now, sls)

    def _judge_words(self, what, words, before, now, sls):
        kinds = ("base unknown", ANY_ORDER, "written in", "written at once")
        kind = next((kind for kind in kinds if kind in words), "nothing said")
        self.counts[f"said: {kind}"] += 1
        path = self.ibsim.folder / "ibnetdiscover.out"
        path.write_text(self.ibsim.run("ibnetdiscover"))
        fabric = read_fabric(path)
        free = nx.is_directed_acyclic_graph(
            transition_slowly(fabric, *self._routings(fabric, before, now, sls), replies=False, scope="endports")
        )
        self.counts["every mixture free of loops" if free else "a mixture has a loop"] += 1
        if kind == ANY_ORDER and not free:
            self._complain(f"{what}: a mixture has a loop: {words}")

    def _routings(self, fabric, before, now, sls):
        size = len(fabric.lids)
        known = [np.full((size, size), UNKNOWN, np.uint8) for _ in sls]
        for table, sl in zip(known, sls, strict=True):
            if sl is not None:
                table[: len(sl), : len(sl)] = sl[:size, :size]
        for tables, sl, other in zip((before, now), known, known[::-1], strict=True):
            lft = np.full((fabric.switches, size), 255, np.uint8)
            for row, guid in enumerate(fabric.switch_guid.tolist()):
                for lid, port in tables.get(guid, {}).items():
                    if lid < size:
                        lft[row, lid] = port
            # If a sender had no path in one of the two sets of tables, the SL of its path in the other set is taken.
            table = np.where(sl != UNKNOWN, sl, np.where(other != UNKNOWN, other, np.uint8(0)))
            yield Routing(lft, table, (np.arange(16) % self.vls).astype(np.uint8), self.vls, 1, Provenance("read"))

    def _complain(self, text):
        self.complaints.append(text)
