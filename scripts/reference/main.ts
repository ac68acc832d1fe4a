// Writes docs/reference from the types of the SDK. A test compares the result with the committed pages.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { root } from '../steps.ts';
import { readClasses, readTypes } from './read-types.ts';
import { writeConfigurationSchema, writeMethods, writePages } from './write-pages.ts';

const directory = join(root, 'docs/reference');
await mkdir(directory, { recursive: true });
const pages = [...writePages(readTypes()), writeMethods(readClasses()), writeConfigurationSchema()];
for (const { path, text } of pages) await writeFile(join(directory, path), text);
