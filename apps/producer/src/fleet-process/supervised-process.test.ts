import { describe, expect, test } from 'vitest';
import { lastMessage } from './supervised-process.ts';

describe('the reason why a supervised process ended', () => {
  test.each([
    ['the last line', 'starting\nThe port 7410 is taken.\n', 'The port 7410 is taken.'],
    [
      'the message of an error that nothing caught',
      "node:internal:331\n  throw new E();\n  ^\n\nError [ERR_MODULE_NOT_FOUND]: Cannot find package 'ws'\n    at a (b:1:2) {\n  code: 'E'\n}\n\nNode.js v24.21.0\n",
      "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'ws'",
    ],
    ['the version of Node if there is no message', '\nNode.js v24.21.0\n', 'Node.js v24.21.0'],
    ['nothing for no output', '', ''],
  ])('is %s', (_, stderr, reason) => {
    expect(lastMessage(stderr)).toBe(reason);
  });
});
