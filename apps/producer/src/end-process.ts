/** Ends this process as soon as its output has been read. Node's own clean-up would take some ms. */
export async function exitWhenWritten(exitCode: number): Promise<void> {
  process.exitCode = exitCode;
  // A process with an IPC channel is left to end by itself, because messages to its parent may still be on their way.
  if (process.channel !== undefined) return;
  await Promise.all([written(process.stdout), written(process.stderr)]);
  process.exit();
}

/** Resolves when the stream is written, or when its reader has gone. */
function written(stream: NodeJS.WriteStream): Promise<void> {
  if (stream.writableLength === 0 || stream.destroyed) return Promise.resolve();
  return new Promise((resolve) => stream.write('', () => resolve()));
}
