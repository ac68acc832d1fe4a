import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';

/**
 * Starts a server that supports only enough of the Redis protocol to report a version, for versions and products that
 * are not installed here.
 */
export async function startFakeRedis(
  info: Record<string, string>,
  /** Error that each client gets before the server closes its connection. Default: the server answers commands. */
  refusal?: string,
): Promise<AsyncDisposable & { url: string }> {
  const text = `# Server\r\n${Object.entries(info)
    .map(([name, value]) => `${name}:${value}\r\n`)
    .join('')}`;
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    if (refusal !== undefined) return void socket.end(`${refusal}\r\n`);
    let pending = '';
    socket.on('data', (bytes) => {
      pending += bytes.toString('latin1');
      for (let command = takeCommand(pending); command !== undefined; command = takeCommand(pending)) {
        pending = command.rest;
        socket.write(answer(command.name));
      }
    });
  });
  const answer = (name: string) =>
    name.toLowerCase() === 'info' ? `$${Buffer.byteLength(text)}\r\n${text}\r\n` : '+OK\r\n';
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port was given');
  return {
    url: `redis://127.0.0.1:${address.port}`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/**
 * Returns the name of the first command in the text and the text after that command, or undefined while the command is
 * not complete. A command is an array of bulk strings.
 */
function takeCommand(text: string): { name: string; rest: string } | undefined {
  const head = /^\*(\d+)\r\n/.exec(text);
  if (head === null) return undefined;
  let at = head[0].length;
  const words: string[] = [];
  while (words.length < Number(head[1])) {
    const length = /^\$(\d+)\r\n/.exec(text.slice(at, at + 16));
    if (length === null) return undefined;
    const from = at + length[0].length;
    at = from + Number(length[1]) + 2;
    if (at > text.length) return undefined;
    words.push(text.slice(from, at - 2));
  }
  return { name: words[0] ?? '', rest: text.slice(at) };
}
