// Loaded before shopward: each SIGUSR2 puts its wall clock forward or back by as much as SHIFT_MS says.
const real = Date.now;
let shiftMs = 0;
Date.now = () => real() + shiftMs;
process.on('SIGUSR2', () => {
  shiftMs += Number(process.env.SHIFT_MS);
});
