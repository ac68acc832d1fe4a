import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { DEFAULTS } from '../../libs/protocol/src/defaults.ts';
import { OUTCOMES } from '../../libs/protocol/src/result.ts';
import { root } from '../steps.ts';
import { describeDefault } from './describe-default.ts';
import { readOptionTexts } from './option-texts.ts';
import {
  type ClassEntry,
  type FieldEntry,
  readClasses,
  readTypes,
  readUnexported,
  type TypeEntry,
} from './read-types.ts';
import { writeDocstrings, writeFlagTexts } from './write-docstrings.ts';
import { writeOpenApi } from './write-openapi.ts';
import { DEFAULTS_OF, writeConfigurationSchema, writeMethods, writePages } from './write-pages.ts';
import { writeRoutes } from './write-routes.ts';

let types: TypeEntry[];
let classes: ClassEntry[];
beforeAll(() => {
  types = readTypes();
  classes = readClasses();
});

describe('the reference of the SDK', () => {
  test('is the output of npm run reference', async () => {
    for (const { path, text } of [
      ...[...writePages(types), writeMethods(classes), writeConfigurationSchema(), writeRoutes()],
    ])
      expect(await readFile(join(root, 'docs/reference', path), 'utf8'), `run npm run reference: ${path}`).toBe(text);
  });

  test('has docstrings and texts of flags that are those of the schemas', async () => {
    const texts = readOptionTexts();
    for (const { path, text } of [...(await writeDocstrings(texts)), writeFlagTexts(texts)])
      expect(await readFile(join(root, path), 'utf8'), `run npm run reference: ${path}`).toBe(text);
  });

  test('has the OpenAPI document of the routes', async () => {
    const { path, text } = await writeOpenApi();
    expect(await readFile(join(root, path), 'utf8'), `run npm run reference: ${path}`).toBe(text);
  });

  test('has a docstring for every field of every public type', () => {
    const silent = types.flatMap(({ name, fields }) => fields.filter(isSilent).map((field) => `${name}.${field.name}`));
    expect(silent).toEqual([]);
  });

  /** Returns true for fields that must have a docstring and have none. Methods, literals and counts need none here. */
  function isSilent({ name, text, type, isMethod }: FieldEntry): boolean {
    const isLiteral = /^(?:null|true|undefined|'[^']*'(?: \| '[^']*')*)$/.test(type);
    return text === '' && !isMethod && !isLiteral && !OUTCOMES.some((outcome) => outcome === name);
  }

  test('has every public method of the SDK, with its signature and a text', () => {
    const { text } = writeMethods(classes);
    const named = [
      'Fleet.connect',
      'Fleet.command',
      'Fleet.sessions',
      'Fleet.batch',
      'Session.submit',
      'Session.attach',
    ];
    named.push('Command.cancel', 'Command.result', 'Batch.run', 'Approvals.approve', 'Tools.call', 'Terminal.resize');
    named.push('Files.read', 'Files.stream', 'Files.upload');
    for (const { name, fields } of types.filter((type) => type.fields.some((field) => field.isMethod)))
      named.push(...fields.filter((field) => field.isMethod).map((field) => `${name}.${field.name}`));
    for (const name of named) expect(text).toContain(`### ${name}\n`);
    const members = classes.flatMap((own) => own.members.map((member) => ({ ...member, of: own.name })));
    const silent = members.filter((member) => member.text === '' && member.of !== 'ShellfleetError');
    expect(silent.map(({ of, name }) => `${of}.${name}`)).toEqual([]);
    expect(members.filter(({ name, signature }) => !signature.startsWith(name))).toEqual([]);
  });

  test('has exactly the defaults of the table in the docstrings of options', () => {
    for (const [name, part] of Object.entries(DEFAULTS_OF)) {
      const { fields } = types.find((type) => type.name === name) as TypeEntry;
      for (const [field, value] of Object.entries(DEFAULTS[part])) {
        const said = fields.find((own) => own.name === field)?.default;
        expect([describeDefault(value), value], `${name}.${field}`).toContain(said);
      }
    }
  });

  test('names only exported types in public signatures', () => {
    expect(readUnexported()).toEqual([]);
  });
});
