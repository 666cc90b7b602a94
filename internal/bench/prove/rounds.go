package prove

// DefaultRounds take 18 s of a raw transfer on two cores, and find a difference of 5 % in all but
// one of twenty tries or more.
const DefaultRounds = 10
