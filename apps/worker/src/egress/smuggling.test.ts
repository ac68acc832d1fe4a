import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { SessionEgress } from './session-egress.ts';

// EGRESS-HTTP-4 (fault 112): compares the one request of a session with the requests that a server behind the proxy
// reads. That server parses raw bytes: after a head without a length, it reads another request.

/** End of every request, so that the server behind recognises when all of it has arrived. */
const END = 'END';
const HIDDEN = `GET /hidden HTTP/1.1\r\nHost: other.test\r\nX: ${END}`;

let directory: string;
let path: string;
let behind: Server;
let port: number;
let egress: SessionEgress;
let arrived: string[] = [];

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sf-smuggling-'));
  path = join(directory, 'egress');
  behind = createServer((socket) => {
    const at = arrived.push('') - 1;
    socket.on('error', () => {});
    socket.on('data', (data) => {
      arrived[at] += String(data);
      if (arrived[at]?.includes(END)) socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
    });
  });
  await new Promise<void>((resolve) => behind.listen(0, '127.0.0.1', resolve));
  port = (behind.address() as { port: number }).port;
  const hosts = [`site.test:${port}`];
  egress = new SessionEgress({
    rules: {
      ...{ allowedHosts: hosts, hosts },
      mayConnectTo: () => true,
      resolveName: async () => [{ address: '127.0.0.1', family: 4 as const }],
    },
    onRequest: () => {},
  });
  await egress.listen(path);
  egress.begin('limited');
});
afterEach(() => {
  arrived = [];
});
afterAll(async () => {
  egress.close();
  behind.close();
  await rm(directory, { recursive: true });
});

/** Returns the reply to a request with these headers, if there is one. */
async function send(method: string, headers: string[], body: string, lineEnd = '\r\n'): Promise<string> {
  const socket = connect(path).on('error', () => {});
  let answer = '';
  socket.on('data', (data) => {
    answer += String(data);
  });
  const closed = new Promise((resolve) => socket.on('close', resolve));
  socket.write([`${method} http://site.test:${port}/a HTTP/1.1`, ...headers, '', body].join(lineEnd));
  await closed;
  return answer;
}

const LENGTH = `Content-Length: ${HIDDEN.length}`;
const CHUNKED = `${HIDDEN.length.toString(16)}\r\n${HIDDEN}\r\n0\r\n\r\n`;

describe('request smuggling', () => {
  test.each<[string, string, string[], string, string[]]>([
    ['a length that Connection names', 'GET', ['Host: x', 'Connection: content-length', LENGTH], HIDDEN, [LENGTH]],
    [
      'a length and a host that Connection names among others',
      'POST',
      ['Host: x', 'Connection: close, Content-Length ,HOST', LENGTH],
      HIDDEN,
      [LENGTH],
    ],
    [
      'a length that a second Connection names',
      'GET',
      ['Host: x', 'Connection: close', 'Connection: content-length', LENGTH],
      HIDDEN,
      [LENGTH],
    ],
    ['two hosts', 'POST', ['Host: x', 'Host: y', LENGTH], HIDDEN, [LENGTH]],
    [
      'chunks that Connection names',
      'GET',
      ['Host: x', 'Connection: transfer-encoding', 'Transfer-Encoding: chunked'],
      CHUNKED,
      ['Transfer-Encoding: chunked'],
    ],
  ])('the server behind the proxy reads one request despite %s', async (_what, method, headers, body, framing) => {
    expect(await send(method, headers, body)).toMatch(/^HTTP\/1.1 200 /);
    expect(arrived).toHaveLength(1);
    const [head = '', ...rest] = (arrived[0] ?? '').split('\r\n\r\n');
    const [first, ...lines] = head.split('\r\n');
    expect(first).toBe(`${method} /a HTTP/1.1`);
    expect(lines.map((line) => line.toLowerCase()).sort()).toEqual(
      [...framing, `host: site.test:${port}`, 'connection: close'].map((line) => line.toLowerCase()).sort(),
    );
    // A chunk may be cut in two, so its last bytes may still be missing when the server behind replies.
    if (framing[0] === LENGTH) expect(rest.join('\r\n\r\n')).toBe(HIDDEN);
    else expect(rest.join('\r\n\r\n')).toMatch(/^[0-9a-f]+\r\nGET \/hidden/);
  });

  const POST = ['Host: x'];
  test.each<[string, string[], string, string?]>([
    ['two lengths', [...POST, LENGTH, 'Content-Length: 0'], HIDDEN],
    ['one length twice', [...POST, LENGTH, LENGTH], HIDDEN],
    ['a list of lengths', [...POST, `${LENGTH}, ${HIDDEN.length}`], HIDDEN],
    ['a length and chunks', [...POST, 'Content-Length: 3', 'Transfer-Encoding: chunked'], CHUNKED],
    ['chunks and a length', [...POST, 'Transfer-Encoding: chunked', LENGTH], CHUNKED],
    [
      'chunks and a length that Connection names',
      [...POST, 'Connection: content-length', 'Transfer-Encoding: chunked', LENGTH],
      CHUNKED,
    ],
    ['a length with a sign', [...POST, `Content-Length: +${HIDDEN.length}`], HIDDEN],
    ['a length in another base', [...POST, 'Content-Length: 0x40'], HIDDEN],
    ['a length that is too great', [...POST, `Content-Length: ${'9'.repeat(30)}`], HIDDEN],
    ['a length with a blank in it', [...POST, 'Content-Length: 4 0'], HIDDEN],
    ['a length with a blank before its colon', [...POST, `Content-Length : ${HIDDEN.length}`], HIDDEN],
    ['chunks of which only the last coding is known', [...POST, 'Transfer-Encoding: gzip, chunked'], CHUNKED],
    ['chunks within another coding', [...POST, 'Transfer-Encoding: chunked, gzip'], CHUNKED],
    ['chunks twice', [...POST, 'Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'], CHUNKED],
    ['chunks by another name', [...POST, 'Transfer-Encoding: xchunked'], CHUNKED],
    ['chunks on a folded line', [...POST, 'Transfer-Encoding:', ' chunked'], CHUNKED],
    ['a length on a folded line', [...POST, 'Content-Length:', ` ${HIDDEN.length}`], HIDDEN],
    ['a folded line behind another header', [...POST, 'X: a', ` ${LENGTH}`], HIDDEN],
    ['a first line that is folded', [` ${LENGTH}`, ...POST], HIDDEN],
    ['a return in a header', [...POST, `X: a\r${LENGTH}`], HIDDEN],
    ['a zero byte in a header', [...POST, `X: a\0${LENGTH}`], HIDDEN],
    ['line feeds alone', [...POST, LENGTH], HIDDEN, '\n'],
    ['a chunk whose size is no number', [...POST, 'Transfer-Encoding: chunked'], `0x40\r\n${HIDDEN}\r\n0\r\n\r\n`],
    ['a chunk longer than its size', [...POST, 'Transfer-Encoding: chunked'], `1\r\n${HIDDEN}\r\n0\r\n\r\n`],
  ])('refuses a request with %s, whose body reaches no server', async (_what, headers, body, lineEnd) => {
    expect(await send('POST', headers, body, lineEnd)).toMatch(/^(?:HTTP\/1.1 (?:4\d\d|502) |$)/);
    expect(arrived.join('')).not.toContain('/hidden');
  });
});
