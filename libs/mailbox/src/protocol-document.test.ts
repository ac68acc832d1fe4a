import { globSync, readFileSync } from 'node:fs';
import * as protocol from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';

const document = readFileSync(new URL('../../../docs/protocol.md', import.meta.url), 'utf8');
const directory = new URL('.', import.meta.url).pathname;
const directories = [directory, new URL('../../placement/src/', import.meta.url).pathname];
const paths = directories.flatMap((cwd) => globSync('*/*.lua', { cwd }).map((path) => cwd + path));
const nameOf = (path: string) =>
  path
    .split('/')
    .slice(-2)
    .join('/')
    .replace(/\.lua$/, '');
const scripts = new Map(paths.map((path) => [nameOf(path), readFileSync(path, 'utf8')]));

describe('docs/protocol.md', () => {
  test('lists every script, and no other', () => {
    const listed = [
      ...document.matchAll(/^\| `((?:host|producer|read|upkeep|bullmq|approvals|batches)\/[a-z-]+)` \|/gm),
    ].map(([, name]) => name);
    expect(listed.sort()).toEqual([...scripts.keys()].sort());
  });

  test.each([...scripts])('has every code that %s replies with', (name, source) => {
    const row = document.split('\n').find((line) => line.startsWith(`| \`${name}\` |`)) ?? '';
    const codes = [...source.matchAll(/return \{(-\d)/g)].map(([, code]) => code);
    // The document describes the reply {-1} of host scripts above their table.
    const own = codes.filter((code) => !(name.startsWith('host/') && code === '-1'));
    for (const code of own) expect(row, `${name} answers ${code}`).toContain(`{${code}`);
  });

  test('names every builder of a key, and every key that a builder makes', () => {
    const session = Object.keys(protocol.sessionKeys('ns', 't', 's'));
    const fleet = Object.keys(protocol.fleetKeys('ns'));
    const builders = [
      ...session
        .filter((name) => ['queue', 'state', 'stream', 'feed'].includes(name))
        .map((name) => `sessionKeys().${name}`),
      ...fleet.filter((name) => name !== 'namespace').map((name) => `fleetKeys().${name}`),
      ...Object.keys(protocol.approvalKeys('ns', 't'))
        .filter((name) => !['namespace', 'tenant', 'prefix'].includes(name))
        .map((name) => `approvalKeys().${name}`),
      ...Object.keys(protocol.batchKeys('ns', 't', 'b'))
        .filter((name) => !['namespace', 'tenant', 'name'].includes(name))
        .map((name) => `batchKeys().${name}`),
      ...Object.keys(protocol.accessKeys('ns:id')).map((name) => `accessKeys().${name}`),
      ...Object.keys(protocol.hostKeys('ns', 'h')).map((name) => `hostKeys().${name}`),
      ...Object.keys(protocol).filter((name) => /^[a-z]\w*Key$/.test(name)),
    ];
    expect(builders.filter((name) => !document.includes(`\`${name}\``))).toEqual([]);
  });

  test('names every event, and no other', () => {
    const table = document.slice(document.indexOf('## Stream entries'), document.indexOf('Output: `<1|2>'));
    const rows = table.split('\n').filter((line) => line.startsWith('| `'));
    const listed = rows.flatMap((row) =>
      [...(row.split('|')[1] ?? '').matchAll(/`([a-z]+\.[a-z]+)`/g)].map(([, type]) => type),
    );
    expect(listed.sort()).toEqual([...protocol.EVENT_TYPES].sort());
  });

  test('names every field that a script writes into the state or a record', () => {
    const preludes = ['prelude.lua', 'approvals-prelude.lua', 'batches-prelude.lua'].map((path) =>
      readFileSync(directory + path, 'utf8'),
    );
    const sources = [...scripts.values(), ...preludes];
    const written = sources.flatMap((source) =>
      [...source.matchAll(/redis\.call\('HSET(?:NX)?', \w+(?:\([^)]*\))?, (.*)\)/g)].flatMap(([, fields = '']) =>
        [...fields.matchAll(/'([a-z]+)', [^']/g)].map(([, field]) => field),
      ),
    );
    expect(written.length).toBeGreaterThan(20);
    expect([...new Set(written)].filter((field) => !document.includes(`\`${field}\``))).toEqual([]);
  });
});
