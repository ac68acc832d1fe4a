import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { toFieldIssues } from './field-issues.ts';
import { toIssueText } from './issue-text.ts';

const issuesOf = (schema: z.ZodType, value: unknown) =>
  schema.safeParse(value, { error: toIssueText }).error?.issues.flatMap(toFieldIssues);

const tagged = z.discriminatedUnion('type', [z.object({ type: z.literal('a') }), z.object({ type: z.literal('b') })]);

describe('the text of an issue', () => {
  test.each<[z.ZodType, unknown, string]>([
    [z.string(), 5, 'must be a string'],
    [z.string(), undefined, 'is missing; it must be a string'],
    [z.number(), '5', 'must be a number'],
    [z.number(), Number.NaN, 'must be a number'],
    [z.int(), 0.5, 'must be a whole number'],
    [z.boolean(), 'yes', 'must be true or false'],
    [z.array(z.string()), {}, 'must be a list'],
    [z.object({}), null, 'must be an object'],
    [z.record(z.string(), z.string()), [], 'must be an object'],
    [z.never(), 1, 'must not be given'],
    [z.custom((value) => value === 1), 2, 'is not valid'],
    [z.file(), 1, 'must be of type file'],
    [z.enum(['a', 'b', 'c']), 'd', "must be 'a', 'b' or 'c'"],
    [z.literal(1), 2, 'must be 1'],
    [z.string().min(1), '', 'must not be empty'],
    [z.string().min(2), 'a', 'must have at least 2 characters'],
    [z.string().max(2), 'abc', 'must have at most 2 characters'],
    [z.string().length(2), 'a', 'must have exactly 2 characters'],
    [z.array(z.int()).max(1), [1, 2], 'must have at most 1 entries'],
    [z.number().min(2), 1, 'must be at least 2'],
    [z.number().positive(), 0, 'must be more than 0'],
    [z.number().max(2), 3, 'must be at most 2'],
    [z.number().lt(2), 2, 'must be less than 2'],
    [z.number().multipleOf(2), 3, 'must be a multiple of 2'],
    [z.string().regex(/^a$/), 'b', 'must match /^a$/'],
    [z.string().startsWith('/'), 'b', "must start with '/'"],
    [z.string().endsWith('/'), 'b', "must end with '/'"],
    [z.string().includes('/'), 'b', "must contain '/'"],
    [z.url(), 'b', 'must be a URL'],
    [z.cidrv4(), 'b', 'must be of the format cidrv4'],
    [z.union([z.string(), z.number(), z.literal('x')]), null, "must be a string, a number or 'x'"],
    [z.union([z.string(), z.number()]), undefined, 'is missing; it must be a string or a number'],
    [
      z.union([z.object({ a: z.string() }), z.object({ b: z.string() })]),
      {},
      'must have exactly one of the forms that are allowed',
    ],
    [z.record(z.string().max(1), z.string()), { ab: '' }, 'has a key that must have at most 1 characters'],
    [z.map(z.string(), z.string()), new Map([['a', 1]]), 'must be a string'],
  ])('states what is allowed: %#', (schema, value, message) => {
    expect(issuesOf(z.object({ field: schema }), { field: value })?.map((issue) => issue.message)).toEqual([message]);
  });

  test('leaves the text that a schema has', () => {
    expect(issuesOf(z.string('must be the name of a host'), 5)).toEqual([
      { path: '', message: 'must be the name of a host' },
    ]);
  });

  test('names unknown fields and unknown tags by their path', () => {
    expect(issuesOf(z.strictObject({}), { other: 1 })).toEqual([{ path: 'other', message: 'unknown field' }]);
    expect(issuesOf(z.object({ it: tagged }), { it: { type: 'c' } })).toEqual([
      { path: 'it.type', message: "must be 'a' or 'b'" },
    ]);
  });
});
