// Loaded into a test's worker: a run that is killed leaves neither workers nor their containers behind.
process.on('disconnect', () => process.kill(process.pid, 'SIGINT'));
