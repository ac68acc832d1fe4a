import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

interface ApiCall {
  method: string;
  url: URL;
  headers: IncomingMessage['headers'];
  body: string;
}

/** Writes a reply of an API server. */
export type ApiReply = (response: ServerResponse, call: ApiCall) => void;

/** An HTTPS server that answers each request with the next reply of a script, and records the requests. */
export interface ScriptedApi extends AsyncDisposable {
  settings: { server: string; caFile: string; tokenFile: string };
  calls: ApiCall[];
  /** Adds replies. The last one answers every further request. */
  replies: ApiReply[];
  writeToken(token: string): void;
}

export async function startScriptedApi(...replies: ApiReply[]): Promise<ScriptedApi> {
  const directory = mkdtempSync(join(tmpdir(), 'sf-api-'));
  const files = { key: join(directory, 'key.pem'), cert: join(directory, 'cert.pem'), token: join(directory, 'token') };
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'];
  const names = ['-subj', '/CN=test', '-addext', 'subjectAltName=IP:127.0.0.1'];
  const out = ['-keyout', files.key, '-out', files.cert];
  execFileSync('openssl', ['req', '-x509', ...curve, '-nodes', '-days', '2', ...names, ...out], { stdio: 'ignore' });
  const writeToken = (token: string) => writeFileSync(files.token, token);
  writeToken('first');
  const calls: ApiCall[] = [];
  const server = createServer({ key: readFileSync(files.key), cert: readFileSync(files.cert) });
  server.on('request', async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString();
    const { method = '', headers } = request;
    const call = { method, url: new URL(request.url ?? '', 'https://api'), headers, body };
    calls.push(call);
    const reply = replies.length > 1 ? replies.shift() : replies[0];
    reply?.(response, call);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    settings: { server: `https://127.0.0.1:${port}`, caFile: files.cert, tokenFile: files.token },
    ...{ calls, replies, writeToken },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      rmSync(directory, { recursive: true });
    },
  };
}

export const replyWith =
  (body: unknown, status = 200, headers: Record<string, string> = {}): ApiReply =>
  (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
  };

export const refuseWith = (code: number, reason = '', headers: Record<string, string> = {}): ApiReply =>
  replyWith({ kind: 'Status', code, reason, message: `${reason} of ${code}` }, code, headers);

/** Sends events of a watch and, unless it stays open, ends it. */
export const sendEvents =
  (events: unknown[], { stays = false } = {}): ApiReply =>
  (response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    for (const event of events) response.write(`${JSON.stringify(event)}\n`);
    if (!stays) response.end();
  };
