//! The five sockets of a kernel, on a kernel thread of their own.

use super::connection::Connection;
use super::message::{Request, Signer};
use crate::console::Console;
use kyocho_lisp::system::SessionHandle;
use serde_json::{Value, json};
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::sync::oneshot;
use zeromq::{
    PubSocket, RepSocket, RouterRecvHalf, RouterSendHalf, RouterSocket, Socket, SocketRecv,
    SocketSend, ZmqMessage, ZmqResult,
};

/// Most requests that wait for the evaluation before them. Beyond that nothing is read from the
/// front end.
const REQUESTS_MAX: usize = 256;
/// Most messages that wait to be sent. Beyond that the threads that write wait.
const ANSWERS_MAX: usize = 64;
const STACK_BYTES: usize = 2 << 20;

/// A message to send.
pub(super) struct Answer {
    kind: &'static str,
    parent: Value,
    content: Value,
    to: To,
}

enum To {
    /// The sender of the request.
    Asker(Channel, Vec<Vec<u8>>),
    /// All front ends.
    All,
    /// No front end: reports that all messages before it were sent.
    Flushed(oneshot::Sender<()>),
}

#[derive(Clone, Copy)]
enum Channel {
    Shell,
    Control,
}

/// Sends messages to the front ends. All clones use the same sockets. Its methods block, so the
/// sockets' own thread must not call them.
#[derive(Clone)]
pub(super) struct Answers(Sender<Answer>);

impl Answers {
    /// Answers a request of the shell channel.
    pub(super) fn reply(&self, request: &Request, kind: &'static str, content: Value) {
        let to = To::Asker(Channel::Shell, request.identities.clone());
        self.send(Answer { kind, parent: request.header.clone(), content, to });
    }

    /// Sends a message about the request with this header to all front ends.
    pub(super) fn show(&self, parent: &Value, kind: &'static str, content: Value) {
        self.send(Answer { kind, parent: parent.clone(), content, to: To::All });
    }

    /// Waits until all messages were sent.
    pub(super) fn flush(&self) {
        let (done, sent) = oneshot::channel();
        let answer =
            Answer { kind: "", parent: Value::Null, content: Value::Null, to: To::Flushed(done) };
        self.send(answer);
        // An error means that the sockets' thread has ended.
        let _ = sent.blocking_recv();
    }

    fn send(&self, answer: Answer) {
        // If the sockets have ended, the message is not needed.
        let _ = self.0.blocking_send(answer);
    }
}

/// State that all sockets share.
struct Shared {
    signer: Signer,
    console: Console,
}

/// Opens the sockets and serves them. Returns the requests for the kernel, and the way for its
/// answers.
///
/// # Errors
/// The host refuses.
pub(super) fn serve(
    connection: Connection,
    handle: SessionHandle,
    console: Console,
) -> Result<(Receiver<Request>, Answers), String> {
    let (requests, inbox) = mpsc::channel(REQUESTS_MAX);
    let (sender, outbox) = mpsc::channel(ANSWERS_MAX);
    let answers = Answers(sender);
    let shared = Shared { signer: Signer::new(&connection.key)?, console };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let control = answers.0.clone();
    let body = move || {
        let all = run(&connection, &shared, handle, requests, control, outbox);
        if let Err(error) = runtime.block_on(all) {
            console.complain(&format!("kyocho: jupyter: {error}"));
        }
    };
    kyocho_sys::thread::start("jupyter", STACK_BYTES, body)
        .map_err(|error| std::io::Error::from(error).to_string())?;
    Ok((inbox, answers))
}

/// Serves until a front end asks for the end, or a socket fails. Then the channel of requests is
/// closed, which ends the kernel.
async fn run(
    connection: &Connection,
    shared: &Shared,
    handle: SessionHandle,
    requests: Sender<Request>,
    answers: Sender<Answer>,
    outbox: Receiver<Answer>,
) -> ZmqResult<()> {
    let (mut shell, mut control) = (RouterSocket::new(), RouterSocket::new());
    let (mut stdin, mut iopub) = (RouterSocket::new(), PubSocket::new());
    let mut heartbeat = RepSocket::new();
    shell.bind(&connection.endpoint(connection.shell_port)).await?;
    control.bind(&connection.endpoint(connection.control_port)).await?;
    // Programs of a notebook have an empty standard input, so nothing is ever sent here.
    stdin.bind(&connection.endpoint(connection.stdin_port)).await?;
    iopub.bind(&connection.endpoint(connection.iopub_port)).await?;
    heartbeat.bind(&connection.endpoint(connection.hb_port)).await?;
    let (shell_send, shell) = shell.split();
    let (control_send, control) = control.split();
    tokio::select! {
        sent = send_all(shared, outbox, shell_send, control_send, iopub) => sent,
        echoed = echo(heartbeat) => echoed,
        served = receive_shell(shared, shell, requests) => served,
        served = serve_control(shared, control, handle, answers) => served,
    }
}

async fn echo(mut heartbeat: RepSocket) -> ZmqResult<()> {
    loop {
        let echo = heartbeat.recv().await?;
        heartbeat.send(echo).await?;
    }
}

async fn receive(shared: &Shared, socket: &mut RouterRecvHalf) -> ZmqResult<Request> {
    loop {
        let parts = socket.recv().await?.into_vec();
        match shared.signer.open(parts.into_iter().map(|part| part.to_vec()).collect()) {
            Ok(request) => return Ok(request),
            // A message without a valid signature is dropped.
            Err(reason) => shared.console.complain(&format!("kyocho: jupyter: {reason}")),
        }
    }
}

async fn receive_shell(
    shared: &Shared,
    mut socket: RouterRecvHalf,
    requests: Sender<Request>,
) -> ZmqResult<()> {
    while requests.send(receive(shared, &mut socket).await?).await.is_ok() {}
    Ok(())
}

/// Answers interrupts and shutdown requests at any time. Returns after a shutdown request.
async fn serve_control(
    shared: &Shared,
    mut socket: RouterRecvHalf,
    handle: SessionHandle,
    answers: Sender<Answer>,
) -> ZmqResult<()> {
    loop {
        let request = receive(shared, &mut socket).await?;
        let (kind, content) = match request.kind() {
            "interrupt_request" => {
                // If nothing runs, there is nothing to interrupt.
                let _ = handle.interrupt();
                ("interrupt_reply", json!({"status": "ok"}))
            }
            "shutdown_request" => {
                let restart = request.is("restart", false);
                ("shutdown_reply", json!({"status": "ok", "restart": restart}))
            }
            "kernel_info_request" => ("kernel_info_reply", super::kernel::info()),
            _ => continue,
        };
        let answer = async |kind, content, to| {
            let answer = Answer { kind, parent: request.header.clone(), content, to };
            // An error means that the sockets have ended.
            let _ = answers.send(answer).await;
        };
        answer("status", json!({"execution_state": "busy"}), To::All).await;
        answer(kind, content, To::Asker(Channel::Control, request.identities.clone())).await;
        answer("status", json!({"execution_state": "idle"}), To::All).await;
        if kind == "shutdown_reply" {
            handle.end();
            let (done, sent) = oneshot::channel();
            answer("", Value::Null, To::Flushed(done)).await;
            // An error means that the sender task has ended.
            let _ = sent.await;
            return Ok(());
        }
    }
}

/// Sends all messages, in order.
async fn send_all(
    shared: &Shared,
    mut outbox: Receiver<Answer>,
    mut shell: RouterSendHalf,
    mut control: RouterSendHalf,
    mut iopub: PubSocket,
) -> ZmqResult<()> {
    while let Some(Answer { kind, parent, content, to }) = outbox.recv().await {
        let identities = match &to {
            To::Flushed(_) => Vec::new(),
            To::Asker(_, identities) => identities.clone(),
            // Subscribers select messages by this name.
            To::All => vec![kind.as_bytes().to_vec()],
        };
        let parts = match shared.signer.close(identities, &parent, kind, &content) {
            Ok(parts) => parts,
            Err(reason) => {
                shared.console.complain(&format!("kyocho: jupyter: {reason}"));
                continue;
            }
        };
        let mut parts = parts.into_iter();
        let mut message = ZmqMessage::from(parts.next().unwrap_or_default());
        parts.for_each(|part| message.push_back(part.into()));
        let sent = match to {
            To::Flushed(done) => {
                // The waiting thread may have ended.
                let _ = done.send(());
                Ok(())
            }
            To::Asker(Channel::Shell, _) => shell.send(message).await,
            To::Asker(Channel::Control, _) => control.send(message).await,
            To::All => iopub.send(message).await,
        };
        // A front end that has disconnected needs no answer.
        drop(sent);
    }
    Ok(())
}
