"""An unmodified jupyter_client drives the kernel; an assertion that fails ends the program with 1."""

from jupyter_client.manager import start_new_kernel

SECONDS = 120

manager, client = start_new_kernel(kernel_name="kyocho", startup_timeout=SECONDS)


def execute(code, **options):
    """What came of a text: the reply, and what was shown, by kind."""
    messages = []
    reply = client.execute_interactive(
        code, timeout=SECONDS, allow_stdin=False, output_hook=messages.append, **options
    )
    return reply["content"], [(m["msg_type"], m["content"]) for m in messages]


def ask(send, *arguments):
    """A request's answer, once the kernel is idle again."""
    identity = send(*arguments)
    while True:
        reply = client.get_shell_msg(timeout=SECONDS)
        if reply["parent_header"].get("msg_id") == identity:
            break
    while True:
        news = client.get_iopub_msg(timeout=SECONDS)
        if news["parent_header"].get("msg_id") == identity and news["content"].get("execution_state") == "idle":
            return reply["content"]


try:
    info = ask(client.kernel_info)
    assert info["implementation"] == "kyocho" and info["language_info"]["name"] == "scheme", info

    reply, messages = execute('(display "é\\n") (define (twice x) (* 2 x)) (twice 21)')
    assert reply["status"] == "ok" and reply["execution_count"] == 1, reply
    assert ("stream", {"name": "stdout", "text": "é\n"}) in messages, messages
    assert [c["data"] for k, c in messages if k == "execute_result"] == [{"text/plain": "42"}], messages

    reply, messages = execute("(car 1)")
    assert reply["status"] == "error" and reply["evalue"].startswith("car: first argument must be a pair"), reply
    assert "notebook:1:1" in reply["traceback"][0], reply
    assert [k for k, _ in messages if k == "error"] == ["error"], messages

    reply, messages = execute(",help")
    assert ["suspend ID" in c["data"]["text/plain"] for k, c in messages if k == "execute_result"] == [True], messages

    assert ask(client.complete, "(twi")["matches"] == ["twice"]
    completed = ask(client.complete, "'é (twi 1)", 7)
    assert (completed["cursor_start"], completed["cursor_end"]) == (4, 7), completed
    assert "twice" in ask(client.inspect, "(twice 1)", 3)["data"]["text/plain"]
    assert not ask(client.inspect, "(nobody-knows)", 3)["found"]
    for code, status in [("(+ 1", "incomplete"), ("(+ 1 2)", "complete"), (")", "invalid")]:
        assert ask(client.is_complete, code)["status"] == status, code

    # Interrupted once it has begun. A cell sent after it is not evaluated.
    identity = client.execute('(display "begun") (newline) (let loop () (loop))')
    behind = client.execute("(define never 1)")
    while True:
        news = client.get_iopub_msg(timeout=SECONDS)
        if news["msg_type"] == "stream" and news["content"]["text"].startswith("begun"):
            break
    manager.interrupt_kernel()
    statuses = {}
    while len(statuses) < 2:
        reply = client.get_shell_msg(timeout=SECONDS)
        statuses[reply["parent_header"]["msg_id"]] = reply["content"]
    assert statuses[identity]["ename"] == "interrupted", statuses
    assert statuses[behind]["status"] == "aborted", statuses
    reply, messages = execute("(twice 4)")
    assert [c["data"] for k, c in messages if k == "execute_result"] == [{"text/plain": "8"}], messages

    # After a restart the session is new. Then the kernel ends on request.
    manager.restart_kernel(now=False)
    client.wait_for_ready(timeout=SECONDS)
    reply, _ = execute("twice")
    assert reply["status"] == "error" and "unbound variable: twice" in reply["evalue"], reply
finally:
    client.stop_channels()
    manager.shutdown_kernel(now=False)
assert not manager.is_alive()
print("all is well")
