import { globSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { BULLMQ_NAMES } from './keys.ts';

const directory = import.meta.dirname;
const paths = ['../queues-prelude.lua', ...globSync('*.lua', { cwd: directory })];
const scripts = paths.map((path) => readFileSync(`${directory}/${path}`, 'utf8'));

/** Literals that are no names of BullMQ: names of a job, a type and a tenant's key, and a key that never exists. */
const OWN = ['session', 'string', ':index', ':nothing'];

describe('the names of BullMQ that the scripts use', () => {
  test('are those that keys.ts lists', () => {
    const code = scripts.join('\n').replaceAll(/--.*/g, '');
    const literals = [...code.matchAll(/'(:?[a-z]\w*)'/g)].map(([, literal = '']) => literal);
    const used = new Set(literals.filter((literal) => !OWN.includes(literal)));
    const listed = Object.values(BULLMQ_NAMES).flatMap((names) => Object.keys(names));
    expect([...used].sort()).toEqual(listed.sort());
  });
});
