import { describe, expect, test } from 'vitest';
import { readLines } from './read-lines.ts';

async function* inPieces(pieces: readonly Uint8Array[]) {
  yield* pieces;
}
const read = async (pieces: readonly Uint8Array[], mostMib?: number) =>
  (await Array.fromAsync(readLines(inPieces(pieces), 'a.jsonl', mostMib))).map(String);

describe('the lines of a stream', () => {
  test.each([
    ['', []],
    ['one\ntwo\n', ['one', 'two']],
    ['one\r\n\r\n\ntwo', ['one', '', '', 'two']],
    ['"\u2028\u2029\u0085\v\f"\n{"a":\r1}\n', ['"\u2028\u2029\u0085\v\f"', '{"a":\r1}']],
    ['é€😀\n😀', ['é€😀', '😀']],
    ['\n\n', ['', '']],
  ])('end at line feeds only, wherever a piece of it ends: %j', async (text, lines) => {
    const bytes = Buffer.from(text);
    for (let at = 0; at <= bytes.length; at++)
      expect(await read([bytes.subarray(0, at), bytes.subarray(at)])).toEqual(lines);
    expect(await read([...bytes].map((byte) => Buffer.of(byte)))).toEqual(lines);
  });

  test('are read up to the limit of their length, and a longer one is named', async () => {
    const whole = Buffer.alloc(1_048_576, 'a');
    expect(await read([Buffer.from('b\n'), whole, Buffer.from('\n')], 1)).toHaveLength(2);
    await expect(read([Buffer.from('b\n'), whole, Buffer.from('a'), Buffer.from('\n')], 1)).rejects.toMatchObject({
      ...{ code: 'COMMAND_INVALID', message: 'a.jsonl:2 is longer than 1 MiB. A line ends with a line feed.' },
      context: { name: 'a.jsonl', line: 2 },
    });
  });
});
