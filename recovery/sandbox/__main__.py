"""The command line: `python -m recovery.sandbox serve | dial | dials | reset | ledger | health`."""

import argparse
import json
import signal
import sys
import threading
from pathlib import Path

from recovery.sandbox.client import SandboxClient, SandboxRefused, SandboxUnreachable
from recovery.sandbox.dials import RULES, read_setting
from recovery.sandbox.server import Sandbox
from recovery.sandbox.store import StoreInUse, StoreUnusable
from recovery.sandbox.wire import Json


def main(argv: list[str] | None = None) -> int:
    """Run one command. 0: done; 1: refused, unreachable or not startable; 2: wrong usage."""
    asked = _parser().parse_args(argv)
    try:
        if asked.command == "serve":
            return _serve(asked.port, asked.db)
        return _control(asked, SandboxClient(asked.url))
    except SandboxRefused as refused:
        return _say(str(refused))
    except (SandboxUnreachable, StoreInUse, StoreUnusable, ValueError) as error:
        return _say(str(error))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m recovery.sandbox", description="A stand-in downstream.")
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser("serve", help="serve until SIGTERM or SIGINT")
    serve.add_argument("--port", type=int, required=True, help="0 takes a free one")
    serve.add_argument("--db", type=Path, required=True, metavar="FILE", help="its SQLite file, made if absent")
    dial = commands.add_parser("dial", help="set a provider's dials", epilog=f"dials: {', '.join(RULES)}")
    dial.add_argument("provider")
    dial.add_argument("settings", nargs="+", metavar="name=value")
    commands.add_parser("dials", help="show every provider's dials")
    reset = commands.add_parser("reset", help="reset one provider's dials, or all; the ledger stays")
    reset.add_argument("provider", nargs="?")
    ledger = commands.add_parser("ledger", help="how often each intent took effect")
    ledger.add_argument("--intent", help="only this one")
    ledger.add_argument("--json", action="store_true", help="whole entries as JSON")
    commands.add_parser("health", help="its process and its totals")
    for name, command in commands.choices.items():
        if name != "serve":
            command.add_argument("--url", required=True, help="where the sandbox listens, http://127.0.0.1:PORT")
    return parser


def _serve(port: int, db: Path) -> int:
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    try:
        sandbox = Sandbox(db, port)
    except (OSError, OverflowError) as error:
        return _say(f"cannot listen on 127.0.0.1:{port}: {error}")
    with sandbox:
        print(f"sandbox listening on {sandbox.url}, file {db}", flush=True)
        ended.wait()
    return 0


def _control(asked: argparse.Namespace, client: SandboxClient) -> int:
    match asked.command:
        case "dial":
            settings: Json = {}
            for pair in asked.settings:
                name, equals, text = pair.partition("=")
                if not equals:
                    return _say(f"{pair} is not name=value")
                settings[name] = read_setting(name, text)
            _show_dials({asked.provider: client.dial(asked.provider, **settings)})
        case "dials":
            _show_dials(client.dials())
        case "reset":
            answer = client.reset(asked.provider)
            _show_dials({asked.provider: answer} if asked.provider else answer)
        case "ledger":
            entries = client.ledger(asked.intent)
            print(json.dumps(entries, indent=2, ensure_ascii=False) if asked.json else _table(entries))
        case "health":
            print(" ".join(f"{name}={value}" for name, value in client.health().items()))
    return 0


def _show_dials(dials: Json) -> None:
    for provider, settings in dials.items():
        print(provider, *(f"{name}={json.dumps(value).strip(chr(34))}" for name, value in settings.items()))


def _table(entries: list[Json]) -> str:
    """The ledger as aligned columns, with the totals in the last line."""
    head = ("PROVIDER", "APPLIED", "RECEIVED", "INTENT")
    rows = [head] + [(e["provider"], str(e["applied"]), str(e["received"]), e["intent"]) for e in entries]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}  {d}" for a, b, c, d in rows]
    applied, twice = sum(e["applied"] for e in entries), sum(e["applied"] > 1 for e in entries)
    lines.append(f"{len(entries)} intents, {applied} effects, {twice} intents applied more than once")
    return "\n".join(lines)


def _say(sentence: str) -> int:
    print(f"sandbox: {sentence}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
