import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { TOOL_ERROR_CODES, toolJobSchema, toolNameSchema } from './tool.ts';

test('docs/tools.md lists every way in which a call fails, and no other', () => {
  const document = readFileSync(new URL('../../../docs/tools.md', import.meta.url), 'utf8');
  const listed = [...document.matchAll(/^\| `([a-z-]+)` \|/gm)].map(([, code]) => code);
  expect(listed).toEqual([...TOOL_ERROR_CODES]);
});

test.each(['a', '_x', 'resize_image', 'read-file', 'A'.repeat(64)])('%s names a tool', (name) => {
  expect(toolNameSchema.safeParse(name).success).toBe(true);
});

test.each(['', '1st', 'a b', 'a:b', 'a.b', '{x}', '__proto__\n', 'é', 'A'.repeat(65)])('%j names none', (name) => {
  expect(toolNameSchema.safeParse(name).success).toBe(false);
});

test('a job holds what the schema says and nothing else', () => {
  const ulid = '01ARZ3NDEKTSV4RRFFQ69G5FAV';
  const job = { call: ulid, tenant: 'default', inbox: ulid, args: 'sealed', timeoutMs: 1 };
  expect(toolJobSchema.parse(job)).toEqual(job);
  for (const wrong of [
    { timeoutMs: 0 },
    { timeoutMs: 1e12 },
    { call: 'x' },
    { tenant: 'a:b' },
    { args: {} },
    { more: 1 },
  ]) {
    expect(toolJobSchema.safeParse({ ...job, ...wrong }).success).toBe(false);
  }
});
