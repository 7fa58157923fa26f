module kyocho.test/bench/peers/go

go 1.19
