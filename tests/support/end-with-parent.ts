// Loaded into a test's worker, so that a killed test run leaves no workers and no containers behind.
process.on('disconnect', () => process.kill(process.pid, 'SIGINT'));
