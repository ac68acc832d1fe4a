// Writes docs/reference from the types of the SDK, docs/openapi.json from the routes of the API, and docstrings and
// texts of flags from the schemas of options. A test compares the result with the committed files.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { root } from '../steps.ts';
import { readOptionTexts } from './option-texts.ts';
import { readClasses, readTypes } from './read-types.ts';
import { writeDocstrings, writeFlagTexts } from './write-docstrings.ts';
import { writeOpenApi } from './write-openapi.ts';
import { writeConfigurationSchema, writeMethods, writePages } from './write-pages.ts';
import { writeRoutes } from './write-routes.ts';

const texts = readOptionTexts();
for (const { path, text } of [...(await writeDocstrings(texts)), writeFlagTexts(texts), await writeOpenApi()])
  await writeFile(join(root, path), text);

// The types are read after their docstrings were written.
const directory = join(root, 'docs/reference');
await mkdir(directory, { recursive: true });
const pages = [...writePages(readTypes()), writeMethods(readClasses()), writeConfigurationSchema(), writeRoutes()];
for (const { path, text } of pages) await writeFile(join(directory, path), text);
