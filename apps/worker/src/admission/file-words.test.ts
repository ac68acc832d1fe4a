import type { FileOperation } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { wordsOfFile } from './file-words.ts';

const write = { name: 'write', offset: 0, last: true, transfer: 't', data: '' } as const;

describe('the words of a file operation', () => {
  test.each<[FileOperation, string[]]>([
    [{ name: 'read', path: '/a/../b', offset: 0, length: 1 }, ['files.read /b (safe)']],
    [{ name: 'stat', path: '/' }, ['files.stat / (safe)']],
    [{ name: 'list', path: '/a/', depth: 1, after: '' }, ['files.list /a (safe)']],
    [{ name: 'list', path: '/a', depth: 0, after: '' }, ['files.list /a (safe) (below)']],
    [{ name: 'pack', path: '/a', names: ['b', '../c'] }, ['files.read /a/b (safe)', 'files.read /c (safe)']],
    [{ ...write, path: '/a//b' }, ['files.write /a/b']],
    [{ name: 'mkdir', path: '/a' }, ['files.mkdir /a']],
    [{ name: 'remove', path: '/a', recursive: false }, ['files.remove /a (below)']],
    [
      { name: 'rename', path: '/a', to: '/b/./c' },
      ['files.rename /a /b/c (below) (files.remove /a) (files.write /b/c)'],
    ],
    [{ name: 'chmod', path: '/a', mode: 0o755 }, ['files.chmod /a 755']],
    [
      {
        name: 'unpack',
        path: '/a',
        entries: [
          { kind: 'directory', name: '.', mode: 0o700 },
          { kind: 'file', name: 'b', mode: 0o644, data: '' },
          { kind: 'symlink', name: 'c/../d', mode: 0o777, data: '' },
          { kind: 'mode', name: 'e', mode: 0o500 },
        ],
      },
      ['files.mkdir /a (files.chmod /a 700)', 'files.write /a/b', 'files.write /a/d', 'files.chmod /a/e 500'],
    ],
  ])('are those that rules compare, for %j', (operation, expected) => {
    const shown = wordsOfFile(operation).map(({ words, isSafe, takesDirectory, alsoStrict = [] }) =>
      [
        words.join(' '),
        isSafe ? '(safe)' : '',
        takesDirectory ? '(below)' : '',
        ...alsoStrict.map((also) => `(${also.join(' ')})`),
      ]
        .filter((part) => part !== '')
        .join(' '),
    );
    expect(shown).toEqual(expected);
  });
});
