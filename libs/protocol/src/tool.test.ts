import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { TOOL_ERROR_CODES, toolJobSchema, toolNameSchema } from './tool.ts';

describe('tools', () => {
  test('docs/tools.md lists every way in which a call fails, and no other', () => {
    const document = readFileSync(new URL('../../../docs/tools.md', import.meta.url), 'utf8');
    const listed = [...document.matchAll(/^\| `([a-z-]+)` \|/gm)].map(([, code]) => code);
    expect(listed).toEqual([...TOOL_ERROR_CODES]);
  });

  test.each(['a', '_x', 'resize_image', 'read-file', 'A'.repeat(64)])('a tool can have the name %s', (name) => {
    expect(toolNameSchema.safeParse(name).success).toBe(true);
  });

  test.each(['', '1st', 'a b', 'a:b', 'a.b', '{x}', '__proto__\n', 'é', 'A'.repeat(65)])(
    'a tool cannot have the name %j',
    (name) => {
      expect(toolNameSchema.safeParse(name).success).toBe(false);
    },
  );

  test('a job has the fields of the schema and no others', () => {
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
});
