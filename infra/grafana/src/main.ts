// `npm run grafana`: writes the dashboard and the alert rules.
import { writeFileSync } from 'node:fs';
import { writeFiles } from './files.ts';

for (const { path, text } of writeFiles()) writeFileSync(path, text);
