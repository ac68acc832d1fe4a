import { ShellfleetError } from './errors.ts';

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
const MIB = 1_048_576;

/**
 * Yields the lines of a stream of bytes, without their ends: a line feed, or a carriage return before it. No other
 * character ends a line, because JSON may have U+2028 and U+2029 in its strings. Throws COMMAND_INVALID, with `name`
 * and the number of the line, when a line is longer than `mostMib`.
 */
export async function* readLines(
  input: AsyncIterable<Uint8Array>,
  name: string,
  mostMib = 64,
): AsyncGenerator<Buffer<ArrayBufferLike>> {
  let parts: Uint8Array[] = [];
  let length = 0;
  let number = 1;
  const add = (part: Uint8Array) => {
    length += part.length;
    if (length > mostMib * MIB)
      throw new ShellfleetError(
        'COMMAND_INVALID',
        `${name}:${number} is longer than ${mostMib} MiB. A line ends with a line feed.`,
        { name, line: number },
      );
    parts.push(part);
  };
  const take = () => {
    const line = joined(parts);
    parts = [];
    length = 0;
    number += 1;
    return line;
  };
  for await (const chunk of input) {
    let from = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, from)) {
      add(chunk.subarray(from, end));
      yield take();
      from = end + 1;
    }
    if (from < chunk.length) add(chunk.subarray(from));
  }
  if (length > 0) yield take();
}

function joined(parts: readonly Uint8Array[]): Buffer<ArrayBufferLike> {
  const [first] = parts;
  const line =
    parts.length === 1 && first !== undefined
      ? Buffer.from(first.buffer, first.byteOffset, first.length)
      : Buffer.concat(parts);
  return line.at(-1) === CARRIAGE_RETURN ? line.subarray(0, -1) : line;
}
