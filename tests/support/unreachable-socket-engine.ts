import { cp } from 'node:fs/promises';
import { createServer, type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';

/**
 * Starts a proxy of an engine that behaves like Docker Desktop: containers see the files of a mounted directory, but
 * cannot connect to a socket in it, because they get a copy of the directory.
 */
export async function startUnreachableSocketEngine(
  enginePath: string,
  directory: string,
): Promise<AsyncDisposable & { path: string }> {
  const path = join(directory, 'engine.sock');
  const server = createServer(async (req, res) => {
    const isCreate = req.method === 'POST' && /\/containers\/create/.test(req.url ?? '');
    const body = isCreate ? await withCopies(await buffer(req), directory) : undefined;
    const headers = { ...req.headers, ...(body && { 'content-length': String(body.length) }) };
    const up = request({ socketPath: enginePath, method: req.method, path: req.url, headers }, (answer) => {
      res.writeHead(answer.statusCode ?? 500, answer.headers);
      res.flushHeaders();
      answer.pipe(res);
    });
    up.on('error', () => res.destroy());
    res.on('close', () => up.destroy());
    if (body) up.end(body);
    else req.pipe(up);
  });
  server.on('upgrade', (req, socket) => {
    const up = connect(enginePath);
    up.write(headOf(req));
    up.pipe(socket).on('error', () => up.destroy());
    socket.pipe(up).on('error', () => socket.destroy());
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return {
    path,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function withCopies(body: Buffer, directory: string): Promise<Buffer> {
  const wanted = JSON.parse(body.toString());
  let copies = 0;
  const copy = async (source: string) => {
    const target = join(directory, `copy-${Date.now()}-${copies++}`);
    const filter = async (path: string) => !path.endsWith('/socket');
    await cp(source, target, { recursive: true, filter });
    return target;
  };
  for (const mount of wanted.HostConfig.Mounts ?? [])
    if (mount.Type === 'bind') mount.Source = await copy(mount.Source);
  wanted.HostConfig.Binds &&= await Promise.all(
    wanted.HostConfig.Binds.map(async (bind: string) => {
      const [source = '', ...rest] = bind.split(':');
      return [await copy(source), ...rest].join(':');
    }),
  );
  return Buffer.from(JSON.stringify(wanted));
}

function headOf({ method, url, headers }: IncomingMessage): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return `${method} ${url} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`;
}
