'use strict';
const { mkdirSync, writeFileSync } = require('node:fs');
const { dirname, join } = require('node:path');

// A plugin of Nx: writes how each task of a run ended, for the counts of `npm test`. It is loaded by Nx itself.

/** Written anew at the end of every run: task id (`project:target`) → `success`, `failure`, `skipped`, `local-cache`… */
const path = join(__dirname, '../../.cache/nx-tasks.json');

module.exports = {
  name: 'record-tasks',
  postTasksExecution(_options, { taskResults }) {
    const statuses = Object.fromEntries(Object.entries(taskResults).map(([id, { status }]) => [id, status]));
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, `${JSON.stringify(statuses, null, 2)}\n`);
  },
};
