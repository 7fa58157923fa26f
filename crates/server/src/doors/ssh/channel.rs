//! The two uses of an SSH channel: a prompt on a terminal, or one text to evaluate.

use super::IdentifiedConnection;
use super::terminal::{Size, Terminal};
use crate::dialect::TEXT_BYTES_MAX;
use crate::frames::{ClientMessage, ServerMessage, line_of};
use crate::register::Register;
use kyocho_lisp::account::Reserved;
use russh::server::Msg;
use russh::{Channel, ChannelMsg, ChannelReadHalf, ChannelWriteHalf, Sig};
use std::io;
use std::os::unix::net::UnixStream as StdStream;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::mpsc::Sender;

/// Exit status if there was no session. `ssh` uses it for its own failures.
const FAILED: u32 = 255;
/// The number of standard error among a channel's streams.
const STANDARD_ERROR: u32 = 1;
const CONTROL_C: u8 = 3;

/// The client of a channel.
pub(super) struct Client {
    pub(super) user: String,
    pub(super) register: Arc<Register>,
    pub(super) identified: Sender<IdentifiedConnection>,
}

impl Client {
    /// Connects to a new getty. Returns the client's end.
    async fn connect(&self) -> io::Result<StdStream> {
        let (ours, stream) = StdStream::pair()?;
        let identified = IdentifiedConnection { user: self.user.clone(), stream };
        let closed = |_| io::Error::other("the server accepts no more sessions");
        self.identified.send(identified).await.map_err(closed)?;
        Ok(ours)
    }
}

/// Serves a channel to its end.
pub(super) async fn serve(channel: Channel<Msg>, client: Client) {
    let (mut input, output) = channel.split();
    let mut terminal = None;
    let ended = loop {
        match input.wait().await {
            Some(ChannelMsg::RequestPty { term, col_width, row_height, .. }) => {
                terminal = Some((term, Size::new(col_width, row_height)));
            }
            Some(ChannelMsg::WindowChange { col_width, row_height, .. }) => {
                if let Some((_, size)) = &mut terminal {
                    *size = Size::new(col_width, row_height);
                }
            }
            Some(ChannelMsg::RequestShell { .. }) => {
                break match terminal {
                    Some((term, size)) => prompt(&mut input, &output, &client, &term, size).await,
                    None => match read_text(&mut input, &client).await {
                        Ok(Some((text, held))) => {
                            // From here on the session charges the text.
                            drop(held);
                            evaluate(&mut input, &output, &client, &text, false).await
                        }
                        Ok(None) => return,
                        Err(error) => Err(error),
                    },
                };
            }
            Some(ChannelMsg::Exec { command, .. }) => {
                let text = String::from_utf8_lossy(&command);
                break evaluate(&mut input, &output, &client, &text, terminal.is_some()).await;
            }
            Some(ChannelMsg::Close) | None => return,
            Some(_) => {}
        }
    };
    // The client may have disconnected; then the status is not needed.
    let _ = end(&output, ended).await;
}

/// Sends the exit status to the client, and closes the channel.
async fn end(output: &ChannelWriteHalf<Msg>, ended: io::Result<u32>) -> Result<(), russh::Error> {
    let status = match ended {
        Ok(status) => status,
        Err(error) => {
            let message = format!("kyocho: {error}\r\n");
            output.extended_data_bytes(STANDARD_ERROR, message.into_bytes()).await?;
            FAILED
        }
    };
    output.exit_status(status).await?;
    output.eof().await?;
    output.close().await
}

/// Runs a prompt (`kyocho connect` on a terminal) until it ends or the client disconnects.
async fn prompt(
    input: &mut ChannelReadHalf,
    output: &ChannelWriteHalf<Msg>,
    client: &Client,
    term: &str,
    size: Size,
) -> io::Result<u32> {
    let terminal = Terminal::start(client.connect().await?, &client.user, term, size)?;
    let sent = async {
        while let Some(bytes) = terminal.read().await? {
            output.data_bytes(bytes).await.map_err(io::Error::other)?;
        }
        io::Result::Ok(())
    };
    let typed = async {
        loop {
            match input.wait().await {
                Some(ChannelMsg::Data { data }) => terminal.write(&data).await?,
                Some(ChannelMsg::WindowChange { col_width, row_height, .. }) => {
                    terminal.resize(Size::new(col_width, row_height))?;
                }
                Some(ChannelMsg::Signal { signal: Sig::INT }) => {
                    terminal.write(&[CONTROL_C]).await?;
                }
                Some(ChannelMsg::Close) | None => return io::Result::Ok(()),
                Some(_) => {}
            }
        }
    };
    tokio::select! {
        sent = sent => sent?,
        typed = typed => typed?,
    }
    terminal.end().await
}

/// Reads everything that a client without a terminal sends. The bytes are charged to its user.
/// `None` if the client disconnects before the end.
async fn read_text(
    input: &mut ChannelReadHalf,
    client: &Client,
) -> io::Result<Option<(String, Reserved)>> {
    let account = client.register.account_of(&client.user);
    let mut held =
        account.ok_or(io::ErrorKind::PermissionDenied)?.reserve(0).map_err(io::Error::other)?;
    let mut text = Vec::new();
    loop {
        match input.wait().await {
            // The session reports a text that is too long. It counts the bytes as well.
            Some(ChannelMsg::Data { data }) if text.len() <= TEXT_BYTES_MAX => {
                held.resize(text.len() + data.len()).map_err(io::Error::other)?;
                text.extend_from_slice(&data);
            }
            Some(ChannelMsg::Eof) => {
                return Ok(Some((String::from_utf8_lossy(&text).into_owned(), held)));
            }
            Some(ChannelMsg::Close) | None => return Ok(None),
            Some(_) => {}
        }
    }
}

/// Evaluates one text. Output and values are sent to standard output, the error to standard error.
async fn evaluate(
    input: &mut ChannelReadHalf,
    output: &ChannelWriteHalf<Msg>,
    client: &Client,
    text: &str,
    has_terminal: bool,
) -> io::Result<u32> {
    let ours = client.connect().await?;
    ours.set_nonblocking(true)?;
    let (reader, mut writer) = UnixStream::from_std(ours)?.into_split();
    let mut lines = BufReader::new(reader).lines();
    ask(&mut writer, &ClientMessage::Run { text: text.to_owned() }).await?;
    let show = |stream, text: String| {
        let text = if has_terminal { text.replace('\n', "\r\n") } else { text };
        async move {
            let sent = match stream {
                None => output.data_bytes(text.into_bytes()).await,
                Some(stream) => output.extended_data_bytes(stream, text.into_bytes()).await,
            };
            sent.map_err(io::Error::other)
        }
    };
    loop {
        tokio::select! {
            line = lines.next_line() => {
                let line = line?.ok_or(io::ErrorKind::UnexpectedEof)?;
                match serde_json::from_str(&line).map_err(io::Error::other)? {
                    ServerMessage::Output { text } => show(None, text).await?,
                    ServerMessage::Refused { reason } => return Err(io::Error::other(reason)),
                    ServerMessage::Done { values, error, exit } => {
                        for value in values {
                            show(None, value + "\n").await?;
                        }
                        let failed = error.is_some();
                        if let Some(error) = error {
                            show(Some(STANDARD_ERROR), error + "\n").await?;
                        }
                        return Ok(exit.map_or(u32::from(failed), u32::from));
                    }
                    ServerMessage::Welcome { .. } | ServerMessage::Names { .. } => {}
                }
            }
            message = input.wait() => match message {
                Some(ChannelMsg::Signal { signal: Sig::INT }) => {
                    ask(&mut writer, &ClientMessage::Interrupt {}).await?;
                }
                Some(ChannelMsg::Data { data }) if has_terminal && data.contains(&CONTROL_C) => {
                    ask(&mut writer, &ClientMessage::Interrupt {}).await?;
                }
                Some(ChannelMsg::Close) | None => return Ok(FAILED),
                Some(_) => {}
            }
        }
    }
}

async fn ask(writer: &mut OwnedWriteHalf, ask: &ClientMessage) -> io::Result<()> {
    writer.write_all(&line_of(ask)).await
}
