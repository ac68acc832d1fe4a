'use strict';
const { mkdirSync, writeFileSync } = require('node:fs');
const { dirname, join } = require('node:path');

// An Nx plugin: writes the status of each task of a run, for the counts of `npm test`. Nx loads it.

/** Overwritten at the end of every run: task id (`project:target`) → `success`, `failure`, `skipped`, `local-cache`… */
const path = join(__dirname, '../../.cache/nx-tasks.json');

module.exports = {
  name: 'record-tasks',
  postTasksExecution(_options, { taskResults }) {
    const statuses = Object.fromEntries(Object.entries(taskResults).map(([id, { status }]) => [id, status]));
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, `${JSON.stringify(statuses, null, 2)}\n`);
  },
};
