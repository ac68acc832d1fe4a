import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';

/** A server that supports only enough of the Redis protocol to report a version, for versions and products that are not installed here. */
export async function startFakeRedis(info: Record<string, string>): Promise<AsyncDisposable & { url: string }> {
  const text = `# Server\r\n${Object.entries(info)
    .map(([name, value]) => `${name}:${value}\r\n`)
    .join('')}`;
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('data', (bytes) => {
      // Each command is an array whose first element is its name; nothing that is sent here is split over two packets.
      for (const [, name = ''] of bytes.toString().matchAll(/\*\d+\r\n\$\d+\r\n(\w+)\r\n/g)) socket.write(answer(name));
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
