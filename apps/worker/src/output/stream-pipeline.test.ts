import { compileRedaction } from '@shellfleet/policy';
import { describe, expect, test } from 'vitest';
import { CleanOutput } from './clean-output.ts';
import { StreamPipeline } from './stream-pipeline.ts';

const SECRET = 'hunter2-correct-horse';
const { redactor: createRedactor } = compileRedaction({ secrets: { TOKEN: SECRET }, hashKey: new Uint8Array(32) });
const texts = { maxBytes: 1_000, maxLines: 100, keep: 'head-tail', encoding: 'utf8' } as const;

describe('the pipeline of a stream', () => {
  test('counts secrets on both sides of a gap, in the Result and the last chunk', () => {
    const clean = new CleanOutput({ createRedactor, streamBytes: 1_000, texts });
    const line = Buffer.from(`${SECRET}\n`);
    clean.push('stdout', 0, line);
    clean.lose('stdout', line.length + 50);
    clean.push('stdout', line.length + 50, line);
    clean.end();
    const { chunks } = clean.release();
    expect(chunks.at(-1)?.redactions).toEqual({ secret: 2 });
    expect(clean.texts().redactions).toEqual({ secret: 2 });
  });

  test.each([
    ['with', createRedactor],
    ['without', undefined],
  ])('output %s redaction shares no memory with the input', (_, redactor) => {
    const raw = Buffer.from('a line\n');
    const released = new StreamPipeline(redactor).push(raw);
    raw.fill('x');
    expect(released.toString()).toBe('a line\n');
  });
});
