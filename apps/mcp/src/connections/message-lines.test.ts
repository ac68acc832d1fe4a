import { describe, expect, test } from 'vitest';
import { type LineRefusal, MessageLines } from './message-lines.ts';

const PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
const DONE = '{"jsonrpc":"2.0","id":1,"result":{}}';

/** Feeds pieces. Returns what is passed on, and the ids and codes of the replies to the rest. */
function feed(pieces: string[], mostBytes = 100) {
  const refused: [LineRefusal['id'], number][] = [];
  const lines = new MessageLines(mostBytes, ({ id, error }) => void refused.push([id, error.code]));
  for (const piece of pieces) lines.write(piece);
  return { passed: String(lines.read() ?? ''), refused };
}

describe('the lines of a client', () => {
  test('are passed on when they are messages, however they are cut', () => {
    const text = `${PING}\n${DONE}\r\n`;
    for (let at = 0; at <= text.length; at++)
      expect(feed([text.slice(0, at), text.slice(at)])).toEqual({ passed: text, refused: [] });
  });

  test.each<[string, LineRefusal['id'], number]>([
    ['not json', null, -32_700],
    ['{"jsonrpc":', null, -32_700],
    ['5', null, -32_600],
    ['null', null, -32_600],
    ['"text"', null, -32_600],
    ['[]', null, -32_600],
    [`[${PING}]`, null, -32_600],
    ['{}', null, -32_600],
    ['{"jsonrpc":"1.0","id":7,"method":"ping"}', 7, -32_600],
    ['{"jsonrpc":"2.0","id":"a","method":5}', 'a', -32_600],
    ['{"jsonrpc":"2.0","id":7,"result":5}', null, -32_600],
  ])('are refused when they are no message: %s', (line, id, code) => {
    expect(feed([`${line}\n${PING}\n`])).toEqual({ passed: `${PING}\n`, refused: [[id, code]] });
  });

  test('are dropped when they are blank', () => {
    expect(feed(['\n \r\n'])).toEqual({ passed: '', refused: [] });
  });

  test('are passed on unread when they are too long for a message', () => {
    expect(feed(['x'.repeat(60), 'x'.repeat(60)])).toEqual({ passed: 'x'.repeat(120), refused: [] });
    expect(feed([`${'x'.repeat(120)}\n`])).toEqual({ passed: `${'x'.repeat(120)}\n`, refused: [] });
  });
});
