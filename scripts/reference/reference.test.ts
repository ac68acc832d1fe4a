import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { DEFAULTS } from '../../libs/protocol/src/defaults.ts';
import { OUTCOMES } from '../../libs/protocol/src/result.ts';
import { root } from '../steps.ts';
import { describeDefault } from './describe-default.ts';
import { type FieldEntry, readTypes, readUnexported, type TypeEntry } from './read-types.ts';
import { DEFAULTS_OF, writePages } from './write-pages.ts';

let types: TypeEntry[];
beforeAll(() => {
  types = readTypes();
});

test('the reference is what `npm run reference` writes', async () => {
  for (const { path, text } of writePages(types))
    expect(await readFile(join(root, 'docs/reference', path), 'utf8'), `run npm run reference: ${path}`).toBe(text);
});

test('every field of every public type has a docstring', () => {
  const silent = types.flatMap(({ name, fields }) => fields.filter(isSilent).map((field) => `${name}.${field.name}`));
  expect(silent).toEqual([]);
});

/** Methods have docstrings where they are written, and literals and the counts of each outcome say themselves what they are. */
function isSilent({ name, text, type, isMethod }: FieldEntry): boolean {
  const isLiteral = /^(?:null|true|undefined|'[^']*'(?: \| '[^']*')*)$/.test(type);
  return text === '' && !isMethod && !isLiteral && !OUTCOMES.some((outcome) => outcome === name);
}

test('every default that the table has is in the docstring of its option, and no other', () => {
  for (const [name, part] of Object.entries(DEFAULTS_OF)) {
    const { fields } = types.find((type) => type.name === name) as TypeEntry;
    for (const [field, value] of Object.entries(DEFAULTS[part])) {
      const said = fields.find((own) => own.name === field)?.default;
      expect([describeDefault(value), value], `${name}.${field}`).toContain(said);
    }
  }
});

test('every type that a public signature names is exported', () => {
  expect(readUnexported()).toEqual([]);
});
