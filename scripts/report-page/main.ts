// `npm run report-page`: bundles the script of the report of a batch into the client.
import { writeFile } from 'node:fs/promises';
import { bundlePage, PAGE_SCRIPT_PATH } from './bundle-page.ts';

await writeFile(PAGE_SCRIPT_PATH, await bundlePage());
