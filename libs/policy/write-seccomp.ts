// Writes infra/seccomp/session.json, for those who read or ship the profile as a file: npm run seccomp -w libs/policy
import { writeFileSync } from 'node:fs';
import { sessionSeccompProfile } from './src/execution/seccomp.ts';

const file = new URL('../../infra/seccomp/session.json', import.meta.url);
writeFileSync(file, `${JSON.stringify(sessionSeccompProfile(), null, 2)}\n`);
