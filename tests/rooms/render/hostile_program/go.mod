module anneal.invalid/hostile

go 1.26.0
