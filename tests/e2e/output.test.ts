import { createHash } from 'node:crypto';
import type { Command, OutputChunk } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectedResult } from '../support/expected-result.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';

const bytesOf = (chunks: OutputChunk[], stream: OutputChunk['stream']) =>
  Buffer.concat(chunks.filter((chunk) => chunk.stream === stream).map(({ data }) => data));
const textOf = (chunks: OutputChunk[], stream: OutputChunk['stream']) =>
  chunks.flatMap((chunk) => (chunk.stream === stream ? [chunk.text] : [])).join('');

async function collect(output: AsyncIterable<OutputChunk>): Promise<OutputChunk[]> {
  const chunks: OutputChunk[] = [];
  for await (const chunk of output) chunks.push(chunk);
  return chunks;
}

describe.each(['socket', 'attach'] as const)('output over %s', (transport) => {
  let stack: TestFleet;
  beforeAll(async () => {
    stack = await startFleet({ transport });
  });
  afterAll(() => stack?.[Symbol.asyncDispose]());

  // S1-07, S2-07, S3-22
  test('keeps stdout and stderr apart and exact, in Result and stream', async () => {
    const session = await stack.fleet.session('apart');
    const live: OutputChunk[] = [];
    const command = await session.submit('printf "no end)"; printf "to err\\n\\n" >&2; printf " é€😀"', {
      onOutput: (chunk) => live.push(chunk),
    });
    const result = await command.result();
    expect(result).toEqual(
      expectedResult('apart', { stdout: 'no end) é€😀', stderr: 'to err\n\n', output: expect.any(String) }),
    );
    expect(['no end) é€😀to err\n\n', 'no end)to err\n\n é€😀', 'to err\n\nno end) é€😀']).toContain(result.output);
    const chunks = await collect(command.output());
    expect(live).toEqual(chunks);
    expect([textOf(chunks, 'stdout'), textOf(chunks, 'stderr')]).toEqual(['no end) é€😀', 'to err\n\n']);
    expect(chunks.map(({ seq }) => seq)).toEqual(chunks.map((_chunk, index) => index));
  });

  // S0-02, S1-61, S2-14
  test('carries every byte value: exact in chunks and base64, decoded in text', async () => {
    const session = await stack.fleet.session('binary');
    const script = `python3 -c 'import sys; b = bytes(range(256)) * 40; sys.stdout.buffer.write(b); sys.stderr.buffer.write(b[::-1])'`;
    const bytes = Buffer.from(Array.from({ length: 256 * 40 }, (_, index) => index % 256));
    const reversed = Buffer.from(bytes).reverse();
    const command = await session.submit(script, { encoding: 'base64' });
    expect(await command.result()).toEqual(
      expectedResult('binary', {
        stdout: bytes.toString('base64'),
        stderr: reversed.toString('base64'),
        output: expect.any(String),
        totals: { stdoutBytes: 10_240, stderrBytes: 10_240, stdoutLines: 41, stderrLines: 41 },
      }),
    );
    const chunks = await collect(command.output());
    expect(bytesOf(chunks, 'stdout').equals(bytes)).toBe(true);
    expect(bytesOf(chunks, 'stderr').equals(reversed)).toBe(true);
    const decoded = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
    expect(textOf(chunks, 'stdout')).toBe(decoded);
    expect((await session.run(script)).stdout).toBe(decoded);
    expect((await session.run("printf 'a\\r\\nb\\rc\\n\\r'")).stdout).toBe('a\r\nb\rc\n\r');
  });

  // S2-07
  test('reaches its reader while the command runs, however little it is', async () => {
    const session = await stack.fleet.session('live');
    const script = 'echo first; until [ -e seen ]; do sleep 0.02; done; echo second';
    const command = await session.submit(script, { timeoutMs: 20_000 });
    const seen: string[] = [];
    for await (const { text } of command.output()) {
      seen.push(text);
      if (text === 'first\n') await session.files.write('/workspace/seen', '');
    }
    expect(seen).toEqual(['first\n', 'second\n']);
  });

  // S2-23
  test('is read from both streams at once, so alternating writes never wait', async () => {
    const session = await stack.fleet.session('by-turns');
    // 300 kB are more than a pipe holds.
    const fill = (descriptor: number) => `head -c 300000 /dev/zero >&${descriptor}`;
    expect(await session.run([1, 2, 1, 2].map(fill).join('; '), { timeoutMs: 20_000 })).toMatchObject({
      outcome: 'success',
      totals: { stdoutBytes: 600_000, stderrBytes: 600_000, stdoutLines: 1, stderrLines: 1 },
    });
  });

  test('has whole characters in its text even if chunks end inside of characters', async () => {
    const session = await stack.fleet.session('cut-character');
    const script = `for b in '\\360' '\\237' '\\230' '\\200' '\\342\\202' '\\254'; do printf "$b"; sleep 0.03; done; printf '\\360\\237'`;
    const command = await session.submit(script);
    expect((await command.result()).stdout).toBe('😀€\uFFFD');
    const chunks = await collect(command.output());
    expect(textOf(chunks, 'stdout')).toBe('😀€\uFFFD');
    expect(bytesOf(chunks, 'stdout').toString('hex')).toBe('f09f9880e282acf09f');
  });

  test('has the same bytes for a reader that resumes at any id', async () => {
    const session = await stack.fleet.session('resume');
    const script = `i=0; while [ $i -lt 30 ]; do printf "line %s é\\n" $i; [ $((i % 3)) = 0 ] && echo "err $i" >&2; i=$((i + 1)); sleep 0.01; done`;
    const command = await session.submit(script);
    const staying = collect(command.output());
    // This reader stops after each chunk while the command runs, and resumes with a new handle.
    const hopping: OutputChunk[] = [];
    const ended = command.result();
    for (let after: string | undefined, going = true; going; ) {
      going = false;
      const again: Command = await stack.fleet.command(command.id);
      for await (const chunk of again.output(after === undefined ? {} : { after })) {
        hopping.push(chunk);
        after = chunk.id;
        going = true;
        break;
      }
    }
    const result = await ended;
    const stayed = await staying;
    expect(bytesOf(stayed, 'stdout').toString()).toBe(result.stdout);
    expect(bytesOf(hopping, 'stdout').toString()).toBe(result.stdout);
    expect(bytesOf(hopping, 'stderr').toString()).toBe(result.stderr);
    expect(hopping.map(({ id, seq }) => `${id} ${seq}`)).toEqual(stayed.map(({ id, seq }) => `${id} ${seq}`));
    for (const { id } of stayed) {
      const rest = await collect(command.output({ after: id }));
      expect(rest).toEqual(stayed.slice(stayed.findIndex((chunk) => chunk.id === id) + 1));
    }
  });

  test('passes 30 MB complete through the stream, and is cut to size in the Result', { timeout: 60_000 }, async () => {
    const spec = { output: { streamBytes: 64 * 2 ** 20, maxBytes: 1_000 } };
    const session = await stack.fleet.session('thirty', spec);
    const script = `python3 -c '
import sys, hashlib
h = hashlib.md5()
for i in range(30):
    b = (b"%07d\\n" % i) * 131072
    h.update(b); sys.stdout.buffer.write(b)
sys.stdout.flush(); print(h.hexdigest(), file=sys.stderr)'`;
    const command = await session.submit(script);
    const hash = createHash('md5');
    let bytes = 0;
    for await (const { stream, data, omittedBytes } of command.output()) {
      expect(omittedBytes).toBeUndefined();
      if (stream !== 'stdout') continue;
      hash.update(data);
      bytes += data.byteLength;
    }
    const result = await command.result();
    expect({ bytes, md5: `${hash.digest('hex')}\n` }).toEqual({ bytes: 30 * 2 ** 20, md5: result.stderr });
    expect(result.truncated).toEqual({ bytes: true, lines: true });
    expect(result.totals).toEqual({ stdoutBytes: 31_457_280, stderrBytes: 33, stdoutLines: 3_932_160, stderrLines: 1 });
    expect(result.stdout).toBe(
      `${'0000000\n'.repeat(62)}0000\n[... 31456280 bytes, 3932035 lines omitted ...]\n029\n${'0000029\n'.repeat(62)}`,
    );
  });
});

describe('the limits of output', () => {
  let stack: TestFleet;
  beforeAll(async () => {
    stack = await startFleet();
  });
  afterAll(() => stack?.[Symbol.asyncDispose]());

  // S1-22 to S1-24
  test('keep head and tail in the Result, and count the rest', async () => {
    const session = await stack.fleet.session('head-tail', { output: { maxBytes: 40, maxLines: 200 } });
    const result = await session.run('seq 1 100; echo fine >&2');
    expect(result).toEqual(
      expectedResult('head-tail', {
        stdout: '1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n[... 252 bytes, 84 lines omitted ...]\n\n95\n96\n97\n98\n99\n100\n',
        stderr: 'fine\n',
        output: expect.any(String),
        truncated: { bytes: true, lines: false },
        totals: { stdoutBytes: 292, stderrBytes: 5, stdoutLines: 100, stderrLines: 1 },
      }),
    );
  });

  test.each([
    ['head', '1\n2\n3\n4\n[... 284 bytes, 96 lines omitted ...]'],
    ['tail', '[... 279 bytes, 96 lines omitted ...]\n97\n98\n99\n100\n'],
    ['head-tail', '1\n2\n[... 281 bytes, 96 lines omitted ...]\n99\n100\n'],
  ] as const)('keep the lines that were asked for: %s', async (keep, stdout) => {
    const session = await stack.fleet.session(`keep-${keep}`, { output: { keep, maxLines: 4 } });
    expect(await session.run('seq 1 100')).toEqual(
      expectedResult(`keep-${keep}`, {
        stdout,
        truncated: { bytes: false, lines: true },
        totals: { stdoutBytes: 292, stderrBytes: 0, stdoutLines: 100, stderrLines: 0 },
      }),
    );
  });

  // S2-08
  test('let a command run on when a reader takes nothing, which receives the rest later', async () => {
    const session = await stack.fleet.session('slow-reader', { output: { streamBytes: 100_000 } });
    // 16 MB are more than stream, keeper and pipe hold.
    const command = await session.submit('head -c 16000000 /dev/zero');
    const output = command.output();
    const first = await output.next();
    const { outcome, timings } = await command.result();
    expect(outcome).toBe('success');
    // Only an attached reader throttles its command, until it has sent no heartbeat for 10 s.
    expect(timings.runMs).toBeLessThan(8_000);
    const chunks = [...(first.value === undefined ? [] : [first.value]), ...(await collect(output))];
    const omitted = chunks.reduce((sum, { omittedBytes = 0 }) => sum + omittedBytes, 0);
    expect(bytesOf(chunks, 'stdout').length + omitted).toBe(16_000_000);
  });

  // invariant 7
  test('count a gap beyond streamBytes, and leave the Result whole', async () => {
    const session = await stack.fleet.session('budget', {
      output: { streamBytes: 100_000, maxBytes: 1_000_000, maxLines: 200_000 },
    });
    const command = await session.submit('seq 1 100000');
    const result = await command.result();
    const whole = Array.from({ length: 100_000 }, (_, index) => `${index + 1}\n`).join('');
    expect(result.stdout === whole).toBe(true);
    expect(result.truncated).toEqual({ bytes: false, lines: false });
    const chunks = await collect(command.output());
    const carried = bytesOf(chunks, 'stdout');
    const omitted = chunks.reduce((total, chunk) => total + (chunk.omittedBytes ?? 0), 0);
    expect(carried.length).toBeLessThanOrEqual(100_000);
    expect(carried.toString()).toBe(whole.slice(0, carried.length));
    expect({ all: carried.length + omitted }).toEqual({ all: whole.length });
  });
});
