"""An unmodified nrepl-python-client drives the server; an assertion that fails ends the program with 1."""

import sys
import threading

import nrepl

SECONDS = 120

address, token = sys.argv[1:]
plain = nrepl.connect(f"nrepl://{address}")


def ask(**request):
    """All answers to a request, up to the one that ends it."""
    plain.write(request)
    answers = []
    while not answers or "done" not in answers[-1].get("status", []):
        answers.append(plain.read())
        assert answers[-1]["id"] == request["id"], answers
    return answers


def value(answers):
    return [answer["value"] for answer in answers if "value" in answer]


# `describe` is not used: servers answer it with empty dictionaries, which this library takes for an
# end.
one = ask(op="clone", id="2", token=token)[-1]["new-session"]
two = ask(op="clone", id="3")[-1]["new-session"]
assert value(ask(op="eval", id="4", session=one, code="(define (twice x) (* 2 x)) (twice 21)")) == ["42"]
reply = ask(op="eval", id="5", session=two, code="(twice 21)")
assert "eval-error" in reply[-1]["status"] and "unbound variable: twice" in reply[0]["err"], reply

out = ask(op="eval", id="6", session=one, code='(display "shown") (newline) (twice 2)')
assert "".join(answer.get("out", "") for answer in out) == "shown\n" and value(out) == ["4"], out

text = "(define (inner x) (+ 1 (car x)))\n(define (outer x) (list (inner x)))\n'loaded"
load = {"op": "load-file", "id": "7", "session": one, "file": text, "file-path": "/home/ada/f.scm"}
assert value(ask(**load)) == ["loaded"]
names = ask(op="completions", id="8", session=one, prefix="oute")[-1]["completions"]
assert [name["candidate"] for name in names] == ["outer"], names
info = ask(op="lookup", id="9", session=one, sym="outer")[-1]["info"]
assert "outer" in info["doc"] and info["arglists-str"] == "(x)", info
ask(op="eval", id="10", session=one, code="(list (outer 5))")
frames = ask(op="stacktrace", id="11", session=one)[0]["stacktrace"]
assert [(f["name"], f["line"]) for f in frames[:2]] == [("inner", 1), ("outer", 2)], frames

# The library's other interface passes answers to callbacks. One evaluation runs while another
# connection interrupts it.
watching = nrepl.WatchableConnection(nrepl.connect(f"nrepl://{address}"))
begun, ended = threading.Event(), threading.Event()
last = []


def at_end(answer, connection, key):
    last.append(answer)
    if "done" in answer.get("status", []):
        ended.set()


watching.watch("begun", {"id": "12", "out": None}, lambda answer, connection, key: begun.set())
watching.watch("ended", {"id": "12"}, at_end)
watching.send({"op": "eval", "id": "12", "token": token, "code": "(display 'on) (newline) (let loop () (loop))"})
assert begun.wait(SECONDS), "it says that it runs"
watching.send({"op": "interrupt", "id": "13"})
assert ended.wait(SECONDS) and "interrupted" in last[-1]["status"], last

assert len(ask(op="ls-sessions", id="14")[-1]["sessions"]) == 2
assert "session-closed" in ask(op="close", id="15", session=two)[-1]["status"]
assert value(ask(op="eval", id="16", session=one, code="(twice 3)")) == ["6"]

copy = ask(op="clone", id="17", session=one)[-1]["new-session"]
assert value(ask(op="eval", id="18", session=copy, code="(define (twice x) (* 20 x)) (inner '(4))")) == ["5"]
assert value(ask(op="eval", id="19", session=one, code="(twice 3)")) == ["6"]
refused = ask(op="clone", id="20", session="none")[-1]
assert "unknown-session" in refused["status"], refused
print("all is well")
