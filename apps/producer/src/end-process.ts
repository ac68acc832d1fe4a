/**
 * Ends this process as soon as what it wrote has reached its readers. Node would take everything in memory apart first,
 * which takes some ms.
 */
export async function exitWhenWritten(exitCode: number): Promise<void> {
  process.exitCode = exitCode;
  // What was sent to a parent process may still be on its way. It ends by itself then.
  if (process.channel !== undefined) return;
  await Promise.all([written(process.stdout), written(process.stderr)]);
  process.exit();
}

/** Resolves also when the reader has gone. */
function written(stream: NodeJS.WriteStream): Promise<void> {
  if (stream.writableLength === 0 || stream.destroyed) return Promise.resolve();
  return new Promise((resolve) => stream.write('', () => resolve()));
}
