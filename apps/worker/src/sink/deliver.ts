import { open } from 'node:fs/promises';
import { createConnection } from 'node:net';
import type { SinkTarget } from '../config/sink-target.ts';

/** Time in which a receiver must have read a batch. */
const DEADLINE_MS = 10_000;

/**
 * Writes whole lines to a sink. Resolves when it has them: a file when they are on its disk, the receiver of a
 * connection when it has read all of them and ends the connection as well. After a rejection it may have some of them.
 */
export async function deliver(target: SinkTarget, text: string, deadlineMs = DEADLINE_MS): Promise<void> {
  switch (target.type) {
    case 'file':
      return append(target.path, text);
    case 'tcp':
      return send({ host: target.host, port: target.port }, text, deadlineMs);
    case 'unix':
      return send({ path: target.path }, text, deadlineMs);
  }
}

/**
 * Opens the file for each batch, so that it can be rotated by renaming it. A line that a full disk or a crash has cut
 * off stays a line of its own, and the first one of the batch is whole.
 */
async function append(path: string, text: string): Promise<void> {
  await using file = await open(path, 'a+', 0o600);
  const { size } = await file.stat();
  const { buffer, bytesRead } = await file.read(Buffer.alloc(1), 0, 1, Math.max(0, size - 1));
  const isCutOff = bytesRead > 0 && buffer.toString() !== '\n';
  await file.appendFile(isCutOff ? `\n${text}` : text);
  await file.datasync();
}

/**
 * Sends over a connection of its own. TCP does not tell what a receiver has read, but one that has not read everything
 * resets the connection when it closes it, and one that has read the end of the text closes it in order.
 */
function send(to: { host: string; port: number } | { path: string }, text: string, deadlineMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = createConnection(to);
    let isRead = false;
    const late = setTimeout(
      () =>
        socket.destroy(
          new Error(`The receiver has not read everything and closed the connection in ${deadlineMs} ms.`),
        ),
      deadlineMs,
    );
    socket.on('end', () => {
      isRead = socket.writableFinished;
    });
    socket.on('error', reject);
    socket.on('close', () => {
      clearTimeout(late);
      if (isRead) resolve();
      else reject(new Error('The receiver closed the connection before it had everything.'));
    });
    socket.resume();
    socket.end(text);
  });
}
